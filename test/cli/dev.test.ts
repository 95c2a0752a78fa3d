import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runHcp } from '../support/cli.ts';
import { DevRoom } from '../support/dev-room.ts';

const MAIN = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));
const COUNT = ['submit', 'demo.count', '--input'];

describe('hcp dev', () => {
  it('says what it is and what to type next, tells what is said, and ends well on Ctrl-C', async () => {
    await using room = new DevRoom();
    const dev = await room.callee();
    expect(dev.out.all.slice(0, 4)).toEqual([
      expect.stringMatching(/^Callee dev on .*hcp\.db, for development\./),
      'In another terminal, in this folder:',
      expect.stringContaining(`  hcp submit demo.count --input '{"to":5}' --db `),
      'Ctrl-C ends it.',
    ]);
    const { out } = await room.run([...COUNT, '{"to":2,"delay_ms":1}']);
    const session = String(out[0]).slice(8, 16);
    await dev.line(/session_closed: COMPLETED/);
    const told = dev.out.all.slice(4);
    expect(told.every((line) => line.startsWith(session))).toBe(true);
    expect(told.filter((line) => /progress: /.test(line))).toHaveLength(2);
    const { code, err } = await dev.stop();
    expect([code, err, dev.out.all.at(-1)]).toEqual([0, [], expect.stringMatching(/^Closed/)]);
  });

  it('speaks JSON alone with --json, and never of a token', async () => {
    await using room = new DevRoom();
    const dev = room.start(['dev', '--json']);
    await dev.line(/listening/);
    await room.run([...COUNT, '{"to":1,"delay_ms":1}']);
    await dev.line(/session_closed/);
    const { out } = await dev.stop();
    const lines = out.map((line) => JSON.parse(line));
    expect(lines[0]).toEqual({ listening: { callee_id: 'dev', capabilities: ['demo.count', 'hcp.conformance'] } });
    expect(lines.filter(({ type }) => type === 'task_completed')).toHaveLength(1);
    expect(out.join()).not.toContain('session_token');
  });

  it('describes itself to whoever asks', async () => {
    await using room = new DevRoom();
    await room.callee();
    const { code, out } = await room.run(['submit', 'hcp.describe', '--caller-id', 'anybody']);
    expect([code, out.at(-1)]).toEqual([0, expect.stringContaining('demo.count')]);
  });

  it('serves only the callers that are allowed, when some are named', async () => {
    await using room = new DevRoom();
    await room.callee(['dev', '--allow', 'alpha', '--allow', 'beta']);
    const submit = [...COUNT, '{"to":1,"delay_ms":1}'];
    const stranger = await room.run(submit);
    expect([stranger.code, stranger.out[0]]).toEqual([4, expect.stringContaining('rejected: unauthorized')]);
    expect((await room.run([...submit, '--caller-id', 'beta'])).code).toBe(0);
  });

  it('goes on at once with what it was killed in, under the same instance id', async () => {
    await using room = new DevRoom();
    const db = join(room.folder, 'hcp.db');
    const child = spawn(process.execPath, [MAIN, 'dev', '--db', db, '--instance-id', 'dev-1'], { stdio: 'pipe' });
    try {
      for await (const line of createInterface({ input: child.stdout })) if (line.includes('Ctrl-C')) break;
      const submitted = room.start([...COUNT, '{"to":40,"delay_ms":20}']);
      await submitted.line(/counting, 5$/);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await room.callee(['dev', '--instance-id', 'dev-1']);
      const { code, out } = await submitted.ended;
      expect([code, out.at(-1)]).toEqual([0, 'completed: {"counted":40}']);
      const counted = out.flatMap((line) => /counting, (\d+)$/.exec(line)?.[1] ?? []);
      expect([...new Set(counted)]).toEqual(Array.from({ length: 40 }, (_, index) => String(index + 1)));
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('cannot work on a damaged file, nor on a server that is not there', async () => {
    await using room = new DevRoom();
    const file = join(room.folder, 'bad.db');
    writeFileSync(file, 'this is no database, but long enough to be looked at '.repeat(100));
    const damaged = await runHcp(['dev', '--db', file]);
    expect([damaged.code, damaged.out, damaged.err]).toEqual([3, [], [expect.stringContaining('bad.db')]]);
    const away = await runHcp(['dev', '--amqp', 'amqp://guest:secret@127.0.0.1:1']);
    expect([away.code, away.out, away.err.length]).toEqual([3, [], 1]);
    expect(away.err.join()).not.toContain('secret');
    const both = await room.run(['dev', '--amqp', 'amqp://127.0.0.1:1']);
    expect(both.code).toBe(2);
  });
});

describe('hcp callee run', () => {
  const ECHO = `{
    declaration: {
      name: 'test.echo', version: '2.0.0', description: 'Says it again',
      input_schema: { type: 'object' }, output_schema: { type: 'object' },
      safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
    },
    executor: async ({ inputs }) => ({ outputs: inputs }),
  }`;

  async function load(source: string): Promise<{ room: DevRoom; file: string }> {
    const room = new DevRoom();
    const file = join(room.folder, 'callee.mjs');
    writeFileSync(file, source);
    return { room, file };
  }

  it('runs the callee a module describes, until Ctrl-C', async () => {
    const { room, file } = await load(`export default {
      capabilities: [${ECHO}],
      policy: { callers: { cli: {} } },
      options: { maxDuration: 'PT1M' },
    };`);
    await using _ = room;
    const callee = await room.callee(['callee', 'run', file, '--callee-id', 'lab']);
    expect(callee.out.all).toEqual(['Callee lab offers test.echo 2.0.0. Ctrl-C ends it.']);
    const { out } = await room.run(['submit', 'test.echo', '--input', '{"a":"b"}', '--callee-id', 'lab']);
    expect(out.at(-1)).toBe('completed: {"a":"b"}');
    expect((await callee.stop()).code).toBe(0);
  });

  it('says in one sentence what is wrong with a module', async () => {
    const wrong: [source: string, sentence: RegExp][] = [
      ['export const nothing = 1;', /must export capabilities/],
      ['export const capabilities = [{ declaration: {} }];', /capabilities\[0\] must be \{ declaration, executor/],
      ['export default { capabilities: [], policy: 1 };', /policy must be an object/],
      ['export const capabilities = [{ declaration: {}, executor() {} }];', /declaration is invalid/],
      [`export const capabilities = [${ECHO}]; export const options = { nonsense: 1 };`, /nonsense/],
      ['this is no JavaScript', /cannot be imported/],
    ];
    for (const [source, sentence] of wrong) {
      const { room, file } = await load(source);
      await using _ = room;
      const { code, out, err } = await room.run(['callee', 'run', file]);
      expect([source, code, out, err]).toEqual([source, 2, [], [expect.stringMatching(sentence)]]);
    }
  });
});
