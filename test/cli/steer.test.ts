import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DevRoom } from '../support/dev-room.ts';
import { describeOnStacks } from '../support/stacks.ts';

const UNKNOWN = '1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b';

describeOnStacks('hcp pause, resume, replay and abort', (stack) => {
  it('steer a task that nobody follows', async () => {
    await using room = new DevRoom(['--amqp', stack().transportUrl, '--store', stack().storeUrl]);
    await room.callee();
    const sessionId = await room.detached({ to: 1000, delay_ms: 5 });
    expect(await room.run(['pause', sessionId, '--drain', 'PT5S'])).toEqual({ code: 0, out: ['paused'], err: [] });
    expect(await room.run(['resume', sessionId])).toEqual({ code: 0, out: ['running'], err: [] });
    const again = await room.run(['replay', sessionId, '--to', '2', '--json']);
    expect(again.out.map((line) => JSON.parse(line).payload.sequence)).toEqual([1, 2]);
    const { code, out } = await room.run(['abort', sessionId, '--reason', 'Enough', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(String(out))).toEqual({ session_id: sessionId, outcome: { status: 'aborted' } });
    const told = (await room.run(['tail', sessionId])).out.filter((line) => line.includes('state_changed'));
    expect(told.map((line) => line.replace(/^.*state_changed: (.*),.*$/, '$1'))).toEqual([
      'PENDING to RUNNING',
      'RUNNING to PAUSED',
      'PAUSED to RUNNING',
      'RUNNING to ABORTING',
      'ABORTING to ABORTED',
    ]);
  });
});

let room: DevRoom;
beforeAll(async () => {
  room = new DevRoom();
  await room.callee();
});
afterAll(() => room[Symbol.asyncDispose]());

describe('hcp pause, resume and abort', () => {
  it('steer a task that another command follows, which goes on following', async () => {
    const running = room.start(['submit', 'demo.count', '--input', '{"to":1000,"delay_ms":5}']);
    const sessionId = (await running.line(/^session /)).slice(8);
    await running.line(/progress/);
    expect((await room.run(['pause', sessionId, '--immediate'])).code).toBe(0);
    await running.line(/RUNNING to PAUSED/);
    expect((await room.run(['abort', sessionId])).code).toBe(0);
    const { code, out } = await running.ended;
    expect([code, out.at(-1)]).toEqual([1, 'aborted']);
  });

  it('refuse a session that has ended', async () => {
    const { out } = await room.run(['submit', 'demo.count', '--input', '{"to":1,"delay_ms":1}']);
    const sessionId = String(out[0]).slice(8);
    for (const verb of ['pause', 'resume', 'abort']) {
      const { code, err } = await room.run([verb, sessionId]);
      expect([verb, code, err]).toEqual([verb, 4, [expect.stringContaining('has ended')]]);
    }
  });

  it('refuse a task with which it was not agreed on', async () => {
    const { out } = await room.run(['submit', 'hcp.describe', '--detach']);
    const { code, err } = await room.run(['pause', ...out]);
    expect([code, err]).toEqual([4, [expect.stringContaining('pause/1')]]);
  });

  it('say that there is no such session, or that it is no id, or no duration', async () => {
    for (const verb of ['pause', 'resume', 'abort']) {
      const { code, err } = await room.run([verb, UNKNOWN]);
      expect([verb, code, err]).toEqual([verb, 5, [`hcp: The caller cli has no session ${UNKNOWN}`]]);
      expect((await room.run([verb, 'that one'])).code).toBe(2);
      expect((await room.run([verb])).code).toBe(2);
    }
    expect((await room.run(['pause', UNKNOWN, '--drain', 'soon'])).code).toBe(2);
  });
});

describe('two commands of one caller', () => {
  it('each follow their own task, to its end', async () => {
    const argv = ['submit', 'demo.count', '--input', '{"to":20,"delay_ms":20}', '--json'];
    const [first, second] = [room.start(argv), room.start(argv)];
    for (const { code, out } of await Promise.all([first.ended, second.ended])) {
      const told = out.map((line) => JSON.parse(line)).flatMap(({ payload }) => payload?.sequence ?? []);
      expect([code, told]).toEqual([0, Array.from({ length: 44 }, (_, index) => index + 1)]);
    }
  });
});
