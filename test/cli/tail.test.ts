import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../shared/store/open-store.ts';
import { DevRoom } from '../support/dev-room.ts';

const UNKNOWN = '1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b';

let room: DevRoom;
beforeAll(async () => {
  room = new DevRoom();
  await room.callee();
});
afterAll(() => room[Symbol.asyncDispose]());

/** The sequences of events printed as JSON. */
function sequences(out: readonly string[]): number[] {
  return out.map((line) => JSON.parse(line)).flatMap(({ type, payload }) => (type === 'event' ? payload.sequence : []));
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

describe('hcp tail', () => {
  it('shows what was said before and what comes, to the end', async () => {
    const sessionId = await room.detached({ to: 30, delay_ms: 20 });
    const early = room.start(['tail', sessionId, '--json']);
    await early.line(/"progress"/);
    const late = room.start(['tail', sessionId, '--json']);
    for (const { code, out } of await Promise.all([early.ended, late.ended])) {
      expect(code).toBe(0);
      expect(sequences(out)).toEqual(upTo(64));
      expect(out.join()).not.toContain('session_token');
    }
    const { out } = await room.run(['tail', sessionId]);
    expect(out[0]).toMatch(/^[\d:]{8} {7}accepted: risk R1$/);
    expect(out.at(-1)).toMatch(/ 64 {2}session_closed: COMPLETED/);
  });

  it('does not touch what the caller has read', async () => {
    const sessionId = await room.detached({ to: 2, delay_ms: 1 });
    await room.run(['tail', sessionId]);
    await using store = await openStore(`sqlite:${room.folder}/hcp.db`);
    const follow = await store.get('follows', ['cli', sessionId]);
    expect(follow?.last_processed_sequence).toBe(-1);
  });

  it('ends with 1 for a task that failed, 5 for no session, 2 for no id, 130 on Ctrl-C', async () => {
    const script = '{"script":[{"fail":{"code":"input_error","message":"no"}}]}';
    const failed = await room.run(['submit', 'hcp.conformance', '--input', script, '--detach']);
    expect((await room.run(['tail', ...failed.out])).code).toBe(1);
    expect((await room.run(['tail', UNKNOWN])).code).toBe(5);
    expect((await room.run(['tail', 'that one'])).code).toBe(2);
    const sessionId = await room.detached({ to: 1000 });
    const running = room.start(['tail', sessionId]);
    await running.line(/progress/);
    expect((await running.stop()).code).toBe(130);
    expect((await room.run(['abort', sessionId])).code).toBe(0);
  });
});

describe('hcp replay', () => {
  it('prints the events the callee sends again, of a session that runs and of one that has ended', async () => {
    const sessionId = await room.detached({ to: 1000, delay_ms: 20 });
    await room.start(['tail', sessionId]).line(/counting, 3$/);
    const part = await room.run(['replay', sessionId, '--from', '3', '--to', '6', '--json']);
    expect([part.code, sequences(part.out)]).toEqual([0, [3, 4, 5, 6]]);
    await room.run(['abort', sessionId]);
    const whole = await room.run(['replay', sessionId]);
    expect(whole.code).toBe(0);
    expect(whole.out[0]).toMatch(/ 1 {2}session_created/);
    expect(whole.out.at(-1)).toMatch(/session_closed: ABORTED/);
    const tail = await room.run(['tail', sessionId]);
    expect(whole.out).toEqual(tail.out.filter((line) => !line.includes('accepted: ')));
  });

  it('ends with 5 for events and sessions that are not there, and 2 for a range that is none', async () => {
    const sessionId = await room.detached({ to: 1, delay_ms: 1 });
    await room.run(['tail', sessionId]);
    expect((await room.run(['replay', sessionId, '--from', '500'])).code).toBe(5);
    expect((await room.run(['replay', UNKNOWN])).code).toBe(5);
    expect((await room.run(['replay', sessionId, '--from', '3', '--to', '2'])).code).toBe(2);
    expect((await room.run(['replay', sessionId, '--from', 'x'])).code).toBe(2);
  });

  it('leaves no queue behind, and the caller nothing twice', async () => {
    const running = room.start(['submit', 'demo.count', '--input', '{"to":60,"delay_ms":20}', '--json']);
    const { session_id: sessionId } = JSON.parse(await running.line(/session_id/));
    await running.line(/"progress"/);
    expect((await room.run(['replay', sessionId, '--to', '3'])).code).toBe(0);
    const { out } = await running.ended;
    const told = sequences(out);
    expect(told).toEqual(upTo(told.length));
    const database = new DatabaseSync(`${room.folder}/hcp.db`, { readOnly: true });
    const tables = database
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%queue%'")
      .all();
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM ${name}`).all());
    database.close();
    expect(JSON.stringify(rows)).toContain('hcp.evt.cli');
    expect(JSON.stringify(rows)).not.toContain('replay-');
  });
});
