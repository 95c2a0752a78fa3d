import { inspect } from 'node:util';
import { expect } from 'vitest';
import { createKeyRing, generateKey } from '../../callee/index.ts';
import { createLogger, type Logger } from '../../shared/logger.ts';
import { untilStopped } from '../support/executors.ts';
import { type FurnaceOptions, serveFurnace } from '../support/furnace.ts';
import { ALL, askReplay, askStatus } from '../support/inquiries.ts';
import { bytes, submitObject, wireProperties } from '../support/messages.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { recordedTelemetry } from '../support/telemetry.ts';
import { verifies } from '../support/verifies.ts';
import { World } from '../support/world.ts';

/** Writes what it is given down to the last cause, once as it is and once as the SDK's own logger would. */
function thoroughLogger(shown: string[]): Logger {
  const own = createLogger({ level: 'debug' }, { write: (line) => void shown.push(line) });
  const both = (level: 'debug' | 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    shown.push(inspect({ ...fields, message }, { depth: 20, showHidden: true }));
    own[level](fields, message);
  };
  return { debug: both('debug'), info: both('info'), warn: both('warn'), error: both('error') };
}

/** Every row of what may be shown to others. */
async function auditText({ store, calleeId }: World): Promise<string> {
  return JSON.stringify(await store.scan('audit', 'key', { where: [calleeId], limit: 1000 }));
}

describeOnStacks('secrets', (stack) => {
  const { spans } = recordedTelemetry();

  verifies(
    ['V-91', 'HCP-014'],
    'are in no log line, error, audit record, evidence or span, whatever happens to a session',
    async () => {
      await using world = await World.create(stack());
      const shown: string[] = [];
      const tokens: string[] = ['let-me-in-0123456789'];
      const sessions: string[] = [];
      const options: FurnaceOptions = { logger: thoroughLogger(shown), abortToken: 'required' };
      const serve = (more: FurnaceOptions = {}) =>
        serveFurnace(
          world,
          async (task, run) => {
            const { end } = task.inputs;
            await run.checkpoint({ end }, { description: 'begun' });
            const act = run.guard.act('heat', { temperature: end === 'violated' ? 2000 : 20 });
            await act.catch((error) => shown.push(inspect(error, { depth: 20, showHidden: true })));
            if (end === 'failed') throw new Error('It broke', { cause: new Error('Deep down') });
            return end === 'completed' ? { outputs: {} } : untilStopped(task, run);
          },
          { ...options, ...more },
        );
      const submit = async (end: string) => {
        await world.submit({ inputs: { end }, extensions: ALL });
        const started = await world.started();
        sessions.push(started.sessionId);
        tokens.push(started.token);
        return started;
      };
      let callee = await serve();
      for (const end of ['completed', 'failed', 'violated']) {
        await submit(end);
        await world.hearOut();
      }
      const revoked = await submit('revoked');
      await callee.revoke(revoked.sessionId, 'Enough');
      await world.hearOut();
      const aborted = await submit('aborted');
      for (const token of tokens.filter((each) => each !== aborted.token)) {
        await world.abort(aborted.sessionId, { session_token: token });
        await askStatus(world, aborted.sessionId, { token });
        await askReplay(world, aborted.sessionId, [1, 2], { token });
      }
      await world.abort(aborted.sessionId, { session_token: aborted.token });
      await world.hearOut();
      // A submit and an abort that are no messages, with a token where none belongs.
      const [token] = tokens;
      const broken = submitObject({ caller_id: world.callerId, inputs: token, session_token: token });
      await world.send(bytes(broken), wireProperties({ appId: world.callerId }));
      expect(await world.next()).toMatchObject({ type: 'task_rejected' });
      const nowhere = submitObject({}, { type: 'abort', session_id: token, payload: { session_token: { token } } });
      await world.send(bytes(nowhere), wireProperties({ appId: world.callerId }));
      await world.buried();

      const tampered = await submit('tampered');
      await callee.close();
      const set = { session_token: String(tokens[1]) };
      await world.store.commit([{ patch: 'sessions', key: [tampered.sessionId], set }]);
      callee = await serve();
      await world.hearOut();
      const orphan = await submit('orphan');
      await callee.close();
      const secret = await generateKey('HS256');
      callee = await serve({ keys: await createKeyRing([secret]) }); // knows nothing of the key before
      await world.hearOut();
      const files = await Promise.all(sessions.map((sessionId) => callee.evidence(sessionId)));

      const ring = await world.store.scan('keys', 'by_age', { where: [world.calleeId] });
      const keyMaterial = [...ring.map(({ jwk }) => JSON.parse(String(jwk)).d), secret.k];
      expect(keyMaterial).toEqual([expect.stringMatching(/.{40,}/), expect.stringMatching(/.{40,}/)]);
      const span = JSON.stringify(
        spans.getFinishedSpans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
      );
      expect(span).toContain(orphan.sessionId);
      const everything = [...shown, await auditText(world), ...files, span].join('\n');
      expect(everything).toContain('Deep down');
      // Also no part of a token: its signature alone is as good as the whole to whoever has the rest.
      const parts = tokens.flatMap((each) => [each, ...each.split('.').slice(1)]);
      for (const each of [...parts, ...keyMaterial]) expect(everything.includes(each), each).toBe(false);
    },
    60_000,
  );
});
