import { describe, expect } from 'vitest';
import { offer } from '../../../callee/capabilities.ts';
import { verifies } from '../../support/verifies.ts';
import { TASK } from '../../support/world.ts';
import { GateRoom } from './gate-room.ts';

describe('data that others must not read', () => {
  const CLASSES = ['T1', 'T2', 'T3', 'T4'] as const;
  const expected = {
    plain: ['accepted', 'accepted', 'forbidden', 'forbidden'],
    tls: ['accepted', 'accepted', 'accepted', 'accepted'],
    local: ['accepted', 'accepted', 'accepted', 'accepted'],
  };
  for (const link of ['plain', 'tls', 'local'] as const) {
    verifies('HCP-313', `over a ${link} link: ${expected[link].join(', ')}`, async () => {
      const policy = { callers: { alpha: { dataLimit: 'T4' } } } as const;
      await using gate = await GateRoom.open([offer(TASK, async () => ({ outputs: {} }))], { link, policy });
      const verdicts: string[] = [];
      for (const data_classification of CLASSES) {
        verdicts.push(await gate.verdict({ constraints: { data_classification } }, 'alpha'));
      }
      expect(verdicts).toEqual(expected[link]);
    });
  }

  verifies('HCP-313', 'a class that nobody named counts too', async () => {
    const policy = { callers: { alpha: { dataLimit: 'T4' } }, defaultDataClassification: 'T3' } as const;
    await using gate = await GateRoom.open([offer(TASK, async () => ({ outputs: {} }))], { link: 'plain', policy });
    expect(await gate.judge({}, 'alpha')).toMatchObject({
      rejection: { reason_code: 'forbidden', suggestion: 'Reach this callee over TLS (amqps:)' },
    });
  });
});
