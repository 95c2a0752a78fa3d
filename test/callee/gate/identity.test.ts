import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { offer } from '../../../callee/capabilities.ts';
import { type Policy, resolvePolicy, vouchedFor } from '../../../callee/gate/policy.ts';
import { acceptKnownCallers, readAudit } from '../../../callee/index.ts';
import { collect } from '../../support/embedded-stores.ts';
import { SecondCaller } from '../../support/second-caller.ts';
import { describeOnStacks } from '../../support/stacks.ts';
import { verifies } from '../../support/verifies.ts';
import { TASK, tell, World } from '../../support/world.ts';
import { GateRoom } from './gate-room.ts';
import { logIn } from './logins.ts';

/** Making a user takes RabbitMQ a while. */
const TIME_LIMIT_MS = 60_000;

const done = async () => ({ outputs: {} });

describe('who the broker vouches for', () => {
  verifies('HCP-303', 'logins count by default where a link leaves this machine, and not where none does', () => {
    const identities = (['plain', 'tls', 'local'] as const).map((link) => resolvePolicy(undefined, link).identity);
    expect(identities).toEqual(['login', 'login', 'claim']);
    for (const link of ['plain', 'tls', 'local'] as const) {
      for (const identity of ['login', 'claim'] as const) {
        expect(resolvePolicy({ callers: {}, identity }, link).identity).toBe(identity);
      }
    }
  });

  const who = (policy: Partial<Policy>, userId?: string) =>
    vouchedFor(resolvePolicy({ callers: {}, ...policy }, 'tls'), userId);

  verifies('HCP-303', 'a login that is mapped proves its caller, any other its own name, or nothing', () => {
    const logins = { 'svc-7': 'beta' };
    expect(who({ logins }, 'svc-7')).toBe('beta');
    expect(who({ logins, identity: 'claim' }, 'svc-7')).toBe('beta');
    expect(who({ logins }, 'alpha')).toBe('alpha');
    expect(who({ logins, identity: 'claim' }, 'alpha')).toBeUndefined();
    expect([who({ logins }), who({ logins, identity: 'claim' })]).toEqual([undefined, undefined]);
    for (const inherited of ['constructor', '__proto__', 'toString']) {
      expect([inherited, who({ logins, identity: 'claim' }, inherited)]).toEqual([inherited, undefined]);
    }
  });

  verifies(
    ['HCP-303', 'HCP-302'],
    'under login a sender must be vouched for, under claim its word is taken',
    async () => {
      const offered = () => [offer(TASK, done)];
      const callers = { alpha: {} };
      await using strict = await GateRoom.open(offered(), {
        policy: { callers, identity: 'login', logins: { amy: 'alpha' } },
      });
      expect(await strict.verdict()).toBe('unauthorized');
      expect(await strict.verdict({}, 'alpha')).toBe('accepted');
      expect(await strict.verdict({}, 'amy')).toBe('accepted');
      expect(await strict.verdict({}, 'mallory')).toBe('unauthorized');
      expect(await strict.judge()).toMatchObject({
        rejection: { suggestion: 'Publish with user_id set to your login' },
      });
      await using trusting = await GateRoom.open(offered(), {
        policy: { callers, identity: 'claim', logins: { bob: 'beta' } },
      });
      expect(await trusting.verdict()).toBe('accepted');
      expect(await trusting.verdict({}, 'guest')).toBe('accepted');
      expect(await trusting.verdict({}, 'bob')).toBe('unauthorized');
      expect(await trusting.verdict({ caller_id: 'constructor' })).toBe('unauthorized');
    },
  );
});

describeOnStacks('a login that belongs to another caller', (stack) => {
  verifies(
    ['V-62', 'HCP-303', 'HCP-312'],
    'is told so, and on record; the caller it claims to be hears nothing and keeps its message ids',
    async () => {
      await using world = await World.create(stack());
      const beta = new SecondCaller(world);
      await beta.listen();
      await using bob = await logIn(stack());
      const policy = { ...acceptKnownCallers([world.callerId, beta.callerId]), logins: { [bob.login]: beta.callerId } };
      const runs: string[] = [];
      await world.serve(
        async (_, { callerId }) => {
          runs.push(callerId);
          return { outputs: {} };
        },
        { policy },
      );
      const messageId = randomUUID();
      await bob.submit(world, world.callerId, messageId);
      const answer = await beta.next();
      expect(tell(answer)).toBe('task_rejected unauthorized');
      expect(answer.payload).toMatchObject({
        in_reply_to: messageId,
        suggestion: expect.stringContaining('own login'),
      });
      await world.echo(); // it was heard first, if anything was
      expect(runs).toEqual([]);
      const row = await world.store.get('answers', [world.calleeId, beta.callerId, messageId]);
      const [record] = await collect(readAudit(world.store, world.calleeId, String(row?.session_id)));
      expect(record?.kind).toBe('decision');
      const details = { result: 'unauthorized', caller_id: beta.callerId, user_id: bob.login, message_id: messageId };
      expect(JSON.parse(record?.body ?? '')).toMatchObject({ details });
      await world.submit({}, messageId);
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
      expect(runs).toEqual([world.callerId]);
    },
    TIME_LIMIT_MS,
  );

  verifies(
    ['HCP-303', 'HCP-108'],
    'is served under its own name, and only under that',
    async () => {
      await using world = await World.create(stack());
      await using amy = await logIn(stack(), world.callerId);
      await world.serve(done, { policy: { ...acceptKnownCallers([world.callerId, 'beta']), identity: 'login' } });
      await amy.submit(world, 'beta', randomUUID());
      expect(tell(await world.next())).toBe('task_rejected unauthorized');
      await amy.submit(world, world.callerId, randomUUID());
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    },
    TIME_LIMIT_MS,
  );
});
