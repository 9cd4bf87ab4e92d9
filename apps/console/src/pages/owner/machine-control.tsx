/** `MachineControl`: cards with which an owner pauses a connected machine and changes its schedule and models. */
import type { ConsoleCommandResult, ConsoleMachineControl, ConsoleMachineView } from '@inference/formats';
import type { MachineSettings, OwnerAction } from '@inference/protocol';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Pause, Play } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { Time } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, Field, Select } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { CommandIds, doneText, type PauseLength, pauseEnd, RefusedCommand } from './machine-commands.js';
import { machineKey, machinePath } from './queries.js';

interface MachineControlProps {
  readonly providerId: string;
  readonly control: ConsoleMachineControl;
}

export function MachineControl({ providerId, control }: MachineControlProps) {
  const { allowed, settings, supported } = control;
  if (!supported) {
    return (
      <ControlCard>
        <Note title="The agent on this machine is too old.">
          <p>Run “inference-provider update” on the Mac to control it from here.</p>
        </Note>
      </ControlCard>
    );
  }
  if (!allowed) {
    return (
      <ControlCard>
        <Note title="Turned off on the Mac">
          <p>To control this machine from here, run “inference-provider remote-control on” on it.</p>
        </Note>
      </ControlCard>
    );
  }
  if (settings === null) {
    return (
      <ControlCard>
        <p role="status">Waiting for the settings of this machine.</p>
      </ControlCard>
    );
  }
  return (
    <>
      <ControlCard>
        <PauseControl providerId={providerId} pause={settings.pause} />
      </ControlCard>
      <Card
        title="Schedule"
        about={`Times at which the machine accepts requests, in its time zone (${settings.schedule.time_zone}). Empty: always.`}
      >
        {/* A schedule that changed on the Mac replaces the text in the field. */}
        <ScheduleControl key={settings.schedule.windows} providerId={providerId} windows={settings.schedule.windows} />
      </Card>
      <Card
        title="Models on this Mac"
        about="Selected models are served. The agent unloads the others once their running requests have finished."
      >
        <ModelsControl providerId={providerId} settings={settings} />
      </Card>
    </>
  );
}

function ControlCard({ children }: { readonly children: React.ReactNode }) {
  return (
    <Card title="Control" about="Changes take effect on the Mac within seconds. Settings made on the Mac take precedence.">
      {children}
    </Card>
  );
}

/**
 * Returns a function that sends an action to the machine. Rejects with {@link RefusedCommand} if the machine refuses.
 *
 * A retry with the same `choice` reuses the command id. Pauses pass their own `choice`, because the end time in the action differs at each
 * retry.
 */
function useSendCommand(providerId: string): (action: OwnerAction, choice?: string) => Promise<void> {
  const queryClient = useQueryClient();
  const toast = useToast();
  const [ids] = useState(() => new CommandIds());
  return async (action, choice = JSON.stringify(action)) => {
    const id = ids.idFor(choice);
    try {
      const result = await api.post<ConsoleCommandResult>(`${machinePath(providerId)}/commands`, { command_id: id, action });
      ids.answered(id);
      queryClient.setQueryData<ConsoleMachineView>(machineKey(providerId), (view) =>
        view?.control == null ? view : { ...view, control: { ...view.control, settings: result.settings } },
      );
      if (result.refusal !== null) throw new RefusedCommand(result.refusal);
      toast.success(doneText(action));
    } finally {
      void queryClient.invalidateQueries({ queryKey: machineKey(providerId) });
    }
  };
}

const PAUSE_LENGTHS = [
  { value: 'resume', label: 'Until I resume' },
  { value: 'hour', label: 'For 1 hour' },
  { value: 'four_hours', label: 'For 4 hours' },
  { value: 'day', label: 'For 24 hours' },
] as const satisfies readonly { value: PauseLength; label: string }[];

function PauseControl({ providerId, pause }: { readonly providerId: string; readonly pause: MachineSettings['pause'] }) {
  const send = useSendCommand(providerId);
  const [length, setLength] = useState<PauseLength>('resume');
  const { mutate, isPending, error } = useMutation({
    mutationFn: (chosen: PauseLength | null) =>
      chosen === null ? send({ kind: 'resume' }) : send({ kind: 'pause', until: pauseEnd(chosen, Date.now()) }, `pause ${chosen}`),
  });
  const end =
    pause === null || pause.until === null ? (
      'until you resume'
    ) : (
      <>
        until <Time at={new Date(pause.until).toISOString()} as="date-time" />
      </>
    );
  if (pause?.by === 'machine') {
    return (
      <Note title="Paused on the Mac">
        <p>Paused {end}. Only the Mac can end this pause: run “inference-provider resume” on it.</p>
      </Note>
    );
  }
  return (
    <div className="stack-small">
      <ErrorNote error={error} title="The machine was not changed." />
      {pause === null ? (
        <div className="row">
          <Select label="Pause" hideLabel options={PAUSE_LENGTHS} value={length} onValue={setLength} />
          <Button busy={isPending} icon={<Pause size={16} aria-hidden="true" />} onClick={() => mutate(length)}>
            Pause
          </Button>
        </div>
      ) : (
        <div className="row">
          <span>Paused from the console, {end}.</span>
          <Button busy={isPending} icon={<Play size={16} aria-hidden="true" />} onClick={() => mutate(null)}>
            Resume
          </Button>
        </div>
      )}
    </div>
  );
}

function ScheduleControl({ providerId, windows }: { readonly providerId: string; readonly windows: string }) {
  const send = useSendCommand(providerId);
  const form = useFormMutation({ schedule: windows }, ({ schedule }) => send({ kind: 'set_schedule', schedule: schedule.trim() }));
  return (
    <Form onSubmit={form.onSubmit} error={form.error} errorTitle="The schedule was not changed.">
      <Field
        label="Times"
        hint="For example: mon-fri 22:00-07:00, sat-sun 00:00-24:00"
        autoComplete="off"
        spellCheck={false}
        maxLength={2048}
        {...form.field('schedule')}
      />
      <div className="row">
        <Button type="submit" busy={form.isPending}>
          Save schedule
        </Button>
      </div>
    </Form>
  );
}

function ModelsControl({
  providerId,
  settings: { models, models_fixed },
}: {
  readonly providerId: string;
  readonly settings: MachineSettings;
}) {
  const send = useSendCommand(providerId);
  const { mutate, isPending, error, variables } = useMutation({ mutationFn: (action: OwnerAction) => send(action) });
  if (models_fixed) return <p>The models are set on the command line of the agent, and can only be changed there.</p>;
  if (models.length === 0) return <p>No models are downloaded. Run “inference-provider models pull” on the Mac.</p>;
  const pending = isPending && variables.kind === 'set_model' ? variables : null;
  return (
    <div className="stack-small">
      <ErrorNote error={error} title="The models were not changed." />
      {models.map(({ id, served, bytes }) => (
        <CheckField
          key={id}
          label={id}
          hint={pending?.model === id ? 'Waiting for the machine…' : `${(bytes / 1e9).toFixed(1)} GB`}
          checked={pending?.model === id ? pending.served : served}
          disabled={isPending}
          onChange={({ target }) => mutate({ kind: 'set_model', model: id, served: target.checked })}
        />
      ))}
    </div>
  );
}
