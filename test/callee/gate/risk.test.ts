import { describe, expect, it } from 'vitest';
import { offer } from '../../../callee/capabilities.ts';
import { acceptKnownCallers, type CapabilityOptions } from '../../../callee/index.ts';
import type { Capability, RiskLevel } from '../../../schemas/types.ts';
import { mistake } from '../../support/mistakes.ts';
import { describeOnStacks } from '../../support/stacks.ts';
import { verifies } from '../../support/verifies.ts';
import { TASK, tell, World } from '../../support/world.ts';
import { GateRoom, type GateRoomOptions } from './gate-room.ts';

const done = async () => ({ outputs: {} });

function declared(risk_ceiling: RiskLevel): Capability {
  return { ...TASK, safety: { ...TASK.safety, risk_ceiling } };
}

const limit = (riskLimit: RiskLevel): GateRoomOptions => ({ policy: acceptKnownCallers({ alpha: { riskLimit } }) });

/** Hot inputs are R3, a public purpose is R4, and a vendor's own eyes see red. */
const FINDINGS: CapabilityOptions['risk'] = {
  baseline: 'R1',
  rules: [
    {
      when: { properties: { inputs: { properties: { heat: { exclusiveMinimum: 80 } }, required: ['heat'] } } },
      level: 'R3',
      because: 'It gets hot',
      suggestion: 'Stay at 80 or below',
    },
    {
      when: {
        properties: { context: { properties: { purpose: { const: 'show' } }, required: ['purpose'] } },
        required: ['context'],
      },
      level: 'R4',
      because: 'There will be an audience',
    },
  ],
  assess: async ({ callerId, task }) =>
    task.inputs.colour === 'red' ? [{ level: 'R2', because: `${callerId} wants it red` }] : [],
};

describe('the risk of a task', () => {
  const cases: readonly [name: string, task: object, level: RiskLevel][] = [
    ['nothing found', {}, 'R1'],
    ['a rule over inputs that does not fit', { inputs: { heat: 80 } }, 'R1'],
    ['a rule over inputs', { inputs: { heat: 81 } }, 'R3'],
    ['a rule over the context', { context: { purpose: 'show' } }, 'R4'],
    ['the assessor', { inputs: { colour: 'red' } }, 'R2'],
    ['all of them', { inputs: { heat: 99, colour: 'red' }, context: { purpose: 'show' } }, 'R4'],
    ['two of them', { inputs: { heat: 99, colour: 'red' } }, 'R3'],
  ];
  for (const [name, task, level] of cases) {
    verifies('HCP-304', `is the highest finding: with ${name}, ${level}`, async () => {
      await using gate = await GateRoom.open([offer(declared('R5'), done, { risk: FINDINGS })], limit('R5'));
      expect(await gate.judge(task)).toMatchObject({ terms: { riskLevel: level } });
    });
  }

  verifies(['HCP-304', 'HCP-305'], 'is the ceiling when nobody assesses it', async () => {
    for (const ceiling of ['R1', 'R2', 'R3', 'R4', 'R5'] as const) {
      await using gate = await GateRoom.open([offer(declared(ceiling), done)], limit('R5'));
      expect(await gate.judge()).toMatchObject({ terms: { riskLevel: ceiling } });
    }
  });

  verifies('HCP-305', 'may be as high as the limit of the caller, which is R2 unless it was granted more', async () => {
    for (const ceiling of ['R1', 'R2', 'R3', 'R4', 'R5'] as const) {
      await using gate = await GateRoom.open([offer(declared(ceiling), done)]);
      expect([ceiling, await gate.verdict()]).toEqual([ceiling, ceiling <= 'R2' ? 'accepted' : 'risk_too_high']);
    }
  });

  verifies(['HCP-305', 'HCP-314'], 'may not be above the ceiling, not even for a caller with R5', async () => {
    await using gate = await GateRoom.open([offer(declared('R2'), done, { risk: FINDINGS })], limit('R5'));
    expect(await gate.judge({ inputs: { heat: 99 } })).toEqual({
      rejection: {
        reason_code: 'risk_too_high',
        reason_message: 'The task is rated R3, and this capability is for R2 at most: It gets hot',
        suggestion: 'Stay at 80 or below',
        assessed_risk_level: 'R3',
      },
    });
    expect(await gate.verdict({ inputs: { heat: 9, colour: 'red' } })).toBe('accepted');
  });

  verifies('HCP-305', 'that is too high is refused before anybody makes an envelope for it', async () => {
    const envelope = () => {
      throw new Error('No envelope for such a task');
    };
    await using gate = await GateRoom.open([offer(declared('R3'), done, { risk: FINDINGS, envelope })]);
    expect(await gate.verdict({ inputs: { heat: 99 } })).toBe('risk_too_high');
  });

  const wrong: readonly [name: string, options: object, sentence: RegExp][] = [
    ['a baseline above the ceiling', { risk: { baseline: 'R2' } }, /is above its ceiling/],
    ['a baseline that is none', { risk: { baseline: 'low' } }, /^risk\.baseline must be one of R1/],
    ['no baseline', { risk: {} }, /^risk\.baseline must be one of R1/],
    [
      'a rule of no level',
      { risk: { baseline: 'R1', rules: [{ when: {}, because: 'So' }] } },
      /^risk\.rules\[0\]\.level/,
    ],
    [
      'a rule without a reason',
      { risk: { baseline: 'R1', rules: [{ when: {}, level: 'R1' }] } },
      /^risk\.rules\[0\]\.because/,
    ],
    [
      'a rule that cannot be compiled',
      { risk: { baseline: 'R1', rules: [{ when: { type: 'nonsense' }, level: 'R1', because: 'So' }] } },
      /^risk\.rules\[0\]\.when cannot be compiled/,
    ],
    ['an assessor that is none', { risk: { baseline: 'R1', assess: 'R1' } }, /^risk\.assess must be a function/],
    ['an envelope that is none', { envelope: { parameters: 7 } }, /^The safety envelope is invalid: /],
    [
      'an envelope whose procedure is missing',
      { envelope: { emergency_procedures: { heat: 'cool' } } },
      /names the procedure cool, which is not in procedures/,
    ],
    ['an option nobody reads', { rsik: {} }, /^Unknown option rsik; did you mean risk\?/],
  ];
  for (const [name, options, sentence] of wrong) {
    verifies('HCP-315', `refuses ${name} before the start`, () => {
      expect(mistake(() => offer(TASK, done, options as CapabilityOptions))).toMatch(sentence);
    });
  }

  it('is found by rules that look at the own fields of a task only', async () => {
    const when = { required: ['constructor'] };
    const risk: CapabilityOptions['risk'] = { baseline: 'R1', rules: [{ when, level: 'R5', because: 'So' }] };
    await using gate = await GateRoom.open([offer(declared('R5'), done, { risk })]);
    expect(await gate.verdict()).toBe('accepted');
  });
});

describeOnStacks('a task that is too risky', (stack) => {
  verifies(['V-03', 'HCP-305', 'HCP-314'], 'is told its level, why, and what would help', async () => {
    await using world = await World.create(stack());
    const callee = await world.callee({ policy: acceptKnownCallers({ [world.callerId]: { riskLimit: 'R3' } }) });
    callee.capability(declared('R5'), done, { risk: FINDINGS });
    await callee.start();
    const messageId = await world.submit({ context: { purpose: 'show' } });
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      session_id: null,
      payload: {
        reason_code: 'risk_too_high',
        reason_message: 'The task is rated R4, and this caller may ask for R3 at most: There will be an audience',
        suggestion: 'Ask for a task rated R3 or lower, or for a higher limit',
        assessed_risk_level: 'R4',
        in_reply_to: messageId,
      },
    });
    await world.submit({ inputs: { heat: 81 } });
    expect(await world.next()).toMatchObject({ type: 'task_accepted', payload: { risk_level: 'R3' } });
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    await world.submit({ inputs: { heat: 8 } });
    expect(tell(await world.next())).toBe('task_accepted');
  });
});
