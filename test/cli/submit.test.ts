import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runHcp } from '../support/cli.ts';
import { DevRoom } from '../support/dev-room.ts';
import { describeOnStacks } from '../support/stacks.ts';

const FAST = '{"to":2,"delay_ms":1}';

describeOnStacks('hcp submit to hcp dev', (stack) => {
  it('follows a task to its result, event by event', async () => {
    await using room = new DevRoom(['--amqp', stack().transportUrl, '--store', stack().storeUrl]);
    await room.callee();
    const { code, out, err } = await room.run(['submit', 'demo.count', '--input', FAST]);
    expect([code, err]).toEqual([0, []]);
    expect(out[0]).toMatch(/^session [0-9a-f-]{36}$/);
    expect(out.slice(1, -1).map((line) => line.replace(/^[\d:]{8} +/, ''))).toEqual([
      '1  session_created: PENDING, risk R1',
      '2  state_changed: PENDING to RUNNING, safety_check_passed',
      '3  progress: 50 % counting, 1',
      '4  checkpoint_created: counted to 1',
      '5  progress: 100 % counting, 2',
      '6  checkpoint_created: counted to 2',
      '7  state_changed: RUNNING to COMPLETED, task_completed',
      '8  session_closed: COMPLETED, task_completed',
    ]);
    expect(out.at(-1)).toBe('completed: {"counted":2}');
  });
});

describe('hcp submit', () => {
  let room: DevRoom;
  beforeAll(async () => {
    room = new DevRoom();
    await room.callee();
  });
  afterAll(() => room[Symbol.asyncDispose]());

  const submit = (inputs: string, ...more: string[]) => room.run(['submit', 'demo.count', '--input', inputs, ...more]);

  it('prints JSON Lines with --json, without the token', async () => {
    const { code, out } = await submit(FAST, '--json');
    const lines = out.map((line) => JSON.parse(line));
    expect(code).toBe(0);
    expect(lines[0]).toEqual({ session_id: expect.any(String) });
    expect(lines.slice(1, -1).map(({ payload }) => payload.sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(lines.at(-1).outcome).toMatchObject({ status: 'completed', outputs: { counted: 2 } });
    expect(out.join()).not.toContain('session_token');
  });

  it('takes the inputs from a file and from stdin', async () => {
    const file = join(room.folder, 'task.json');
    writeFileSync(file, FAST);
    expect((await submit(`@${file}`)).code).toBe(0);
    const piped = await room.run(['submit', 'demo.count', '--input', '-'], { stdin: FAST });
    expect(piped.out.at(-1)).toBe('completed: {"counted":2}');
    expect((await submit('@nowhere.json')).code).toBe(3);
  });

  it('tells a rejection with its reason, and a command that is accepted', async () => {
    const { code, out } = await submit('{"to":0,"delay_ms":1}');
    expect(code).toBe(4);
    expect(out).toEqual([
      'rejected: invalid_input, /payload/inputs/to must be >= 1',
      expect.stringContaining('suggestion: '),
      'this would be accepted:',
      `  hcp submit demo.count --input '{"to":1,"delay_ms":1}' --db ${room.folder}/hcp.db`,
    ]);
    const json = await submit('{"to":0}', '--json');
    expect(JSON.parse(String(json.out)).outcome).toMatchObject({
      status: 'rejected',
      reason_code: 'invalid_input',
      corrected_command: `hcp submit demo.count --input '{"to":1}' --db ${room.folder}/hcp.db`,
    });
    expect((await submit('{"to":1,"delay_ms":1}')).code).toBe(0);
  });

  it('ends with 1 when the task fails', async () => {
    const input = '{"script":[{"fail":{"code":"input_error","message":"no\\u001b[31m such\\nthing"}}]}';
    const { code, out } = await room.run(['submit', 'hcp.conformance', '--input', input]);
    expect([code, out.at(-1)]).toEqual([1, 'failed: input_error, no [31m such thing']);
  });

  it('aborts the task on Ctrl-C, waits until it has ended, and ends with 130', async () => {
    const running = room.start(['submit', 'demo.count', '--input', '{"to":1000,"delay_ms":5}']);
    await running.line(/progress/);
    const { code, out, err } = await running.stop();
    expect([code, out.at(-1)]).toEqual([130, 'aborted']);
    expect(out.at(-2)).toMatch(/session_closed: ABORTED/);
    expect(err).toEqual(['hcp: aborting; Ctrl-C again leaves at once']);
  });

  it('leaves at once with --detach, and the task goes on', async () => {
    const { code, out } = await submit(FAST, '--detach');
    expect([code, out]).toEqual([0, [expect.stringMatching(/^[0-9a-f-]{36}$/)]]);
    const followed = await room.run(['tail', ...out]);
    expect([followed.code, followed.out.at(-1)]).toEqual([0, expect.stringContaining('COMPLETED')]);
  });

  it('has colours and a bar on a terminal only, and no colours with NO_COLOR', async () => {
    const argv = ['submit', 'demo.count', '--input', FAST];
    const coloured = await room.run(argv, { isTTY: true });
    expect(coloured.out.at(-1)).toBe('\u001b[32mcompleted\u001b[39m: {"counted":2}');
    const plain = await room.run(argv, { isTTY: true, env: { NO_COLOR: '1' } });
    expect(plain.out.join()).not.toContain('\u001b');
    expect(plain.out.filter((line) => line.startsWith('██████████░░░░░░░░░░  50 %'))).toHaveLength(1);
    const piped = (await room.run(argv)).out.join();
    expect(['\u001b', '█'].filter((sign) => piped.includes(sign))).toEqual([]);
  });

  it('refuses what makes no sense before it does anything', async () => {
    const wrong = [
      ['submit'],
      ['submit', 'demo.count', 'twice'],
      ['submit', 'demo.count', '--input', 'no json'],
      ['submit', 'demo.count', '--input', '[1]'],
      ['submit', 'demo.count', '--max-duration', '5 minutes'],
      ['submit', 'demo.count', '--data-class', 'T9'],
      ['submit', 'demo.count', '--extension', 'pause/1={'],
      ['submit', 'demo.count', '--nonsense'],
      ['submit', 'demo.count', '--callee-id', 'a b'],
    ];
    for (const argv of wrong) {
      const { code, out, err } = await runHcp([...argv, '--db', join(room.folder, 'untouched.db')]);
      expect([argv, code, out, err.length]).toEqual([argv, 2, [], 1]);
    }
  });

  it('asks for an extension that it cannot do without', async () => {
    const { code, out } = await submit(FAST, '--extension', 'example.com/magic/1');
    expect([code, out[0]]).toEqual([4, expect.stringContaining('example.com/magic/1')]);
  });
});

describe('hcp submit without a callee', () => {
  it('says in one sentence what cannot be reached, and ends with 3', async () => {
    await using room = new DevRoom();
    const nobody = await room.run(['submit', 'demo.count']);
    expect(nobody).toEqual({ code: 3, out: [], err: ['hcp: There is no callee dev'] });
    const nothing = await runHcp(['submit', 'demo.count', '--amqp', 'amqp://127.0.0.1:1', '--json']);
    expect([nothing.code, nothing.out]).toEqual([3, []]);
    expect(JSON.parse(String(nothing.err)).error.code).toBe('transport_unreachable');
    const file = join(room.folder, 'bad.db');
    writeFileSync(file, 'this is no database, but long enough to be looked at '.repeat(100));
    const damaged = await runHcp(['submit', 'demo.count', '--db', file]);
    expect([damaged.code, damaged.err]).toEqual([3, [expect.stringContaining('bad.db')]]);
  });
});

describe('hcp submit of a task about which a human decides', () => {
  it('says so, and how', async () => {
    await using room = new DevRoom();
    const file = join(room.folder, 'careful.mjs');
    writeFileSync(
      file,
      `export const capabilities = [{
        declaration: {
          name: 'test.careful', version: '1.0.0', description: 'Needs a human',
          input_schema: { type: 'object' }, output_schema: { type: 'object' },
          safety: { risk_ceiling: 'R3', requires_human_approval: true, involves_physical_resources: false },
        },
        executor: async () => ({ outputs: {} }),
      }];
      export const policy = { callers: { cli: { riskLimit: 'R3' } } };`,
    );
    await room.callee(['callee', 'run', file]);
    const { code, out, err } = await room.run(['submit', 'test.careful', '--detach']);
    expect([code, out]).toEqual([0, [expect.stringMatching(/^[0-9a-f-]{36}$/)]]);
    expect(err).toEqual([expect.stringContaining(`hcp approvals approve ${out[0]}`)]);
  });
});
