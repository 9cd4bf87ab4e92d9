import type { Finding } from '@inference/verifier';
import { describe, expect, it } from 'vitest';
import { partStateLabel } from '../../src/features/machines/status-texts.js';
import { answerLimits } from '../../src/features/trust/answer-limits.js';
import { RESULT_LABELS, STATE_LABELS, STEP_LABELS, TRUST_LEVELS } from '../../src/features/trust/labels.js';
import { TERMS } from '../../src/features/trust/terms.js';
import { machineVerdict, VERDICT_OF_EVIDENCE, VERDICTS, type Verdict } from '../../src/features/trust/verdicts.js';
import { stageOutcome } from '../../src/pages/network/verify/stage-outcome.js';

describe('the verdict on a machine', () => {
  it('is Apple hardware only with trust level hardware under the root of Apple', () => {
    expect(machineVerdict('hardware', 'apple')).toBe('hardware');
    expect(machineVerdict('hardware', 'simulated')).toBe('simulated');
    expect(machineVerdict('hardware', 'unknown')).toBe('hardware_unconfirmed');
    expect(machineVerdict('hardware', 'apple', true)).toBe('simulated');
    expect(machineVerdict('self_signed', 'apple', true)).toBe('simulated');
    expect(machineVerdict('self_signed', 'apple')).toBe('self_signed');
    expect([machineVerdict('none', 'apple', true), machineVerdict(null, 'apple')]).toEqual(['untrusted', 'untrusted']);
  });
  it('is green for Apple hardware alone', () => {
    const green = (Object.keys(VERDICTS) as Verdict[]).filter((verdict) => VERDICTS[verdict].tone === 'good');
    expect(green).toEqual(['hardware']);
    expect(VERDICTS[VERDICT_OF_EVIDENCE.simulated]).toMatchObject({ label: 'Verified · simulated machine', tone: 'warn' });
    expect(VERDICTS[VERDICT_OF_EVIDENCE.claimed].tone).toBe('warn');
  });
});

describe('the legend', () => {
  it('explains every label that pages show', () => {
    const explained = new Set(Object.values(TERMS).flatMap(({ terms }) => terms.map(({ term }) => term)));
    const shown = [VERDICTS, RESULT_LABELS, STATE_LABELS, STEP_LABELS, TRUST_LEVELS].flatMap((texts) =>
      Object.values(texts).map(({ label }) => label),
    );
    expect(shown.filter((label) => !explained.has(label))).toEqual([]);
    expect(
      Object.keys(STATE_LABELS)
        .map((state) => partStateLabel(state).label)
        .filter((label) => !explained.has(label)),
    ).toEqual([]);
    for (const { terms } of Object.values(TERMS)) expect(terms.every(({ meaning }) => meaning.length > 20)).toBe(true);
  });
});

describe('the limits of an answer', () => {
  it('begin with the missing evidence for hardware, and name the coordinator only in plain mode', () => {
    expect(answerLimits('simulated')[0]).toMatch(/^Anything about hardware/);
    expect(answerLimits('claimed')[0]).toMatch(/no Apple certificate/);
    expect(answerLimits('certified')).toHaveLength(3);
    expect(answerLimits('certified').join()).toMatch(/the coordinator can read it too/);
    expect(answerLimits(null, 'end_to_end').join()).not.toMatch(/coordinator/);
  });
});

describe('a verification step', () => {
  const finding = (result: Finding['result'], value: Finding['value'] = true, claim = 'x'): Finding => ({
    claim,
    value,
    result,
    explanation: '',
  });

  it('fails with one contradicted claim, and counts it', () => {
    expect(stageOutcome('enclave_key', [finding('reproduced'), finding('contradicted')], true)).toEqual({
      label: 'Failed',
      tone: 'bad',
      countLabel: '2 checks, 1 failed',
      isFailed: true,
    });
  });
  it('passes in green for certified hardware only', () => {
    const passed = [finding('reproduced'), finding('reproduced')];
    expect(stageOutcome('enclave_key', passed, true)).toMatchObject({ label: 'Passed', tone: 'good', countLabel: '2 checks, all passed' });
    expect(stageOutcome('enclave_key', passed, false)).toMatchObject({ label: 'Passed', tone: 'accent', isFailed: false });
    expect(stageOutcome('certificate_chain', [finding('simulated')], false)).toMatchObject({ label: 'Simulated', tone: 'warn' });
  });
  it('without a certificate is not passed, although its claim is true', () => {
    expect(stageOutcome('certificate_chain', [finding('reproduced', false)], true)).toMatchObject({
      label: 'Not claimed',
      tone: 'neutral',
    });
  });
  it('names claims that rest on the coordinator alone, and the trust level', () => {
    expect(stageOutcome('device_management', [finding('word')], true)).toMatchObject({
      label: "Coordinator's word",
      countLabel: '1 check, without evidence',
    });
    expect(
      stageOutcome('trust_level', [finding('word', 'hardware', 'trust_level'), finding('reproduced', 'certified')], true),
    ).toMatchObject({ label: 'Hardware', tone: 'good', countLabel: '2 checks, 1 without evidence' });
    expect(stageOutcome('trust_level', [finding('reproduced', 'self_signed', 'trust_level')], true)).toMatchObject({
      label: 'Self-signed',
    });
  });
});
