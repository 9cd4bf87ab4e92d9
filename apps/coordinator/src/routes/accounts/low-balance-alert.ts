/** `/console/v1/low-balance-alert`: the balance below which the account gets an e-mail. */
import { ConsoleLowBalanceAlertSchema, RequestError, UpdateLowBalanceAlertSchema } from '@inference/formats';
import type { LowBalanceRepository } from '../../database/accounts/low-balance-repository.js';
import type { ConsoleApi } from '../plugins/console-api.js';

/** `alerts` is null if this coordinator cannot send e-mails. */
export function addLowBalanceAlert(api: ConsoleApi, alerts: LowBalanceRepository | null): void {
  const path = '/low-balance-alert';
  api.add({ method: 'GET', path, response: ConsoleLowBalanceAlertSchema }, async ({ caller }) => ({
    available: alerts !== null,
    threshold_micro_usd: (await alerts?.threshold(caller.account.id)) ?? null,
  }));
  api.add(
    { method: 'PUT', path, body: UpdateLowBalanceAlertSchema, response: ConsoleLowBalanceAlertSchema },
    async ({ caller, body: { threshold_micro_usd } }) => {
      if (alerts === null) throw new RequestError('not_configured', null, 'This coordinator does not send mail.');
      await alerts.setThreshold(caller.account.id, threshold_micro_usd);
      return { available: true, threshold_micro_usd };
    },
  );
}
