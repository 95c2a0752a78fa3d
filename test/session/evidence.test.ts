import { createHash, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditDraft } from '../../session/audit/index.ts';
import { AuditChain, exportEvidence, inputsHash, verifyEvidence } from '../../session/audit/index.ts';
import { GroupCommitter } from '../../session/group-committer.ts';
import { createKeyRing, type KeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { EMPTY_LOG, type LogEntry, type LogTail, messageEntry, tailAfter, takeoverEntry } from '../../session/log.ts';
import { newRecord, rowOf, type SessionRecord } from '../../session/record.ts';
import { silentLogger } from '../../shared/logger.ts';
import { type BuiltMessage, buildMessage } from '../../shared/messages/build.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Row, Store, Write } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { describeOnStores } from '../support/audit-room.ts';
import { verifies } from '../support/verifies.ts';

const TOKEN = 'eyJhbGciOiJFZERTQSJ9.c2VjcmV0.c2lnbmF0dXJl';
/** Of an earlier life of the session. */
const OLD_TOKEN = 'eyJhbGciOiJIUzI1NiJ9.b2xkZXI.b2xkIHNpZ25hdHVyZQ';
const INPUTS = { temperature: 80, samples: ['a', 'ü'] };

/** A session from its request to its end, as a callee would have stored it. */
class Ended {
  readonly calleeId = 'lab';
  readonly sessionId = randomUUID();
  readonly clock = new ManualClock();
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  async completed(): Promise<this> {
    const { sessionId, calleeId } = this;
    const state = { from_state: 'RUNNING', to_state: 'COMPLETED', reason: 'task_completed' } as const;
    const common = { senderId: calleeId, sessionId } as const;
    const built = [
      this.#build({ ...common, type: 'task_accepted', payload: { session_token: OLD_TOKEN, risk_level: 'R2' } }),
      this.#event(1, 'session_created', { state: 'PENDING', risk_level: 'R2', session_token: TOKEN }),
      this.#event(2, 'state_changed', { from_state: 'PENDING', to_state: 'RUNNING', reason: 'task_accepted' }),
      this.#event(3, 'log', { level: 'info', message: `Somebody let it slip: ${TOKEN}`, details: {} }),
      this.#build({ ...common, type: 'task_completed', payload: { outputs: { ok: true } } }),
      this.#event(4, 'state_changed', state),
      this.#event(5, 'session_closed', { final_state: 'COMPLETED', reason: 'task_completed' }),
    ];
    const notes = [this.note('decision', { result: 'accepted' }), this.note('data_access', {}), this.note('ended', {})];
    await this.#write({ state: 'COMPLETED', token: TOKEN }, built, notes);
    return this;
  }

  async rejected(): Promise<this> {
    const payload = { reason_code: 'forbidden', reason_message: 'No' };
    const built = this.#build({ senderId: this.calleeId, sessionId: null, type: 'task_rejected', payload });
    await this.#write({ state: 'REJECTED' }, [built], [this.note('decision', { result: 'forbidden' })]);
    return this;
  }

  async running(): Promise<this> {
    const event = this.#event(1, 'log', { level: 'info', message: 'On it', details: {} });
    await this.#write({ state: 'RUNNING', token: TOKEN }, [event], [this.note('decision', {})]);
    return this;
  }

  note(kind: AuditDraft['kind'], details: object): AuditDraft {
    return { kind, sessionId: this.sessionId, details: { ...details, inputs_sha256: inputsHash({ inputs: INPUTS }) } };
  }

  export(keys: KeyRing): Promise<string> {
    return exportEvidence({ ...this, keys });
  }

  /** Writes past everybody. */
  async tamper(...writes: Write[]): Promise<void> {
    if ((await this.store.commit(writes)) !== 'committed') throw new Error('It could not be tampered with');
  }

  async records(): Promise<readonly Row[]> {
    return this.store.scan('audit', 'by_session', { where: [this.calleeId, this.sessionId] });
  }

  #build(draft: Parameters<typeof buildMessage>[0]): BuiltMessage {
    // Only messages that are logged are built here.
    return buildMessage(draft, { clock: this.clock }) as BuiltMessage;
  }

  #event(sequence: number, event_type: string, data: Record<string, unknown>): BuiltMessage {
    const { calleeId: senderId, sessionId } = this;
    return this.#build({ type: 'event', senderId, sessionId, payload: { event_type, sequence, data } });
  }

  async #write(fields: Partial<SessionRecord>, built: readonly BuiltMessage[], audit: readonly AuditDraft[]) {
    const { sessionId, calleeId, clock, store } = this;
    const payload = { capability: 'test.task', caller_id: 'alpha', intent: 'Do it', inputs: INPUTS };
    const submit = buildMessage({ type: 'task_submit', senderId: 'alpha', sessionId: null, payload }, { clock });
    const row = rowOf(
      newRecord({
        ...{ sessionId, calleeId, callerId: 'alpha', messageId: submit.message.message_id, owner: 'i1', epoch: 1 },
        ...{ request: submit.body.toString(), trace: '{}', createdAt: clock.now(), ...fields },
      }),
    );
    const entries: LogEntry[] = [];
    let tail: LogTail = EMPTY_LOG;
    const add = (entry: LogEntry) => {
      entries.push(entry);
      tail = tailAfter(tail, entry);
    };
    for (const message of built) add(messageEntry(sessionId, tail, message, clock.now()));
    // What was published late, by another instance: nothing is said with it.
    add(takeoverEntry(sessionId, tail, clock.now()));
    const chain = new AuditChain(store, { calleeId, clock });
    const committer = new GroupCommitter(store, { clock, logger: silentLogger, audit: chain });
    await committer.commit({ fence: { broken: false }, entries, writes: [{ insert: 'sessions', row }], audit });
  }
}

let keys: KeyRing;
/** As somebody has it who was given the public half alone. */
let published: KeyRing;

beforeAll(async () => {
  keys = await createKeyRing([await generateKey()]);
  published = await createKeyRing(keys.publicKeys());
});

async function findingsIn(file: string | Uint8Array): Promise<readonly string[]> {
  return (await verifyEvidence(file, { keys: published })).findings;
}

describeOnStores('the evidence of a session', (open) => {
  verifies(
    'HCP-312',
    'is whole: the session, its log and its records, and the public key is enough to see it',
    async () => {
      await using store = await open();
      const session = await new Ended(store).completed();
      const text = await session.export(keys);
      expect(await verifyEvidence(text, { keys: published })).toEqual({
        findings: [],
        sessionId: session.sessionId,
        summary: {
          ...{ calleeId: 'lab', exportedAt: '2025-01-15T08:30:00.000Z', state: 'COMPLETED' },
          ...{ logEntries: 8, auditRecords: 3 },
        },
      });
      const lines = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(lines.map((line) => Object.keys(line)[0])).toEqual([
        'format',
        ...Array(8).fill('log'),
        ...Array(3).fill('audit'),
        'seal',
      ]);
      expect(lines[0]).toMatchObject({ format: 'hcp-evidence/1', session: { caller_id: 'alpha', state: 'COMPLETED' } });
      expect(lines[0].session.request.payload.inputs).toEqual(INPUTS);
      expect(lines[5].log.message.payload.outputs).toEqual({ ok: true });
    },
  );

  verifies('HCP-312', 'shows what was changed in the store before it was sealed', async () => {
    await using store = await open();
    const { sessionId } = await new Ended(store).completed();
    const changes: readonly [what: RegExp, change: (ended: Ended, records: readonly Row[]) => Write[]][] = [
      [/Where log entry 3 belongs/, (ended) => [{ delete: 'log', key: [ended.sessionId, 3] }]],
      [/Where event 2 belongs/, (ended) => [{ delete: 'log', key: [ended.sessionId, 3] }]],
      [/another kind than its message/, (ended) => [patchLog(ended, 3, { kind: 'log' })]],
      [/another message_id than/, (ended) => [patchLog(ended, 3, { message_id: randomUUID() })]],
      [
        /another session_id than its message/,
        (ended) => [patchLog(ended, 3, { body: JSON.stringify({ session_id: sessionId }) })],
      ],
      [/another message_id than/, (ended) => [patchLog(ended, 3, { body: 'no JSON' })]],
      [/does not end with that/, (ended) => [{ delete: 'log', key: [ended.sessionId, 7] }]],
      [/is FAILED, but/, (ended) => [{ patch: 'sessions', key: [ended.sessionId], set: { state: 'FAILED' } }]],
      [/no record of the decision/, (_, [first]) => [{ delete: 'audit', key: keyOf(first) }]],
      [
        /does not fit its hash/,
        (_, [first]) => [patchRecord(first, { body: String(first?.body).replace('accepted', 'forbidden') })],
      ],
      [/does not follow/, (_, [first]) => [patchRecord(first, { hash: '0'.repeat(64) })]],
      [/another session_id than the session/, (ended, [first]) => [patchRecord(first, foreign(ended))]],
      [
        /other inputs than those of the request/,
        (ended) => [{ patch: 'sessions', key: [ended.sessionId], set: { request: '{"payload":{"inputs":{}}}' } }],
      ],
    ];
    for (const [what, change] of changes) {
      const ended = await new Ended(store).completed();
      await ended.tamper(...change(ended, await ended.records()));
      expect(await findingsIn(await ended.export(keys))).toContainEqual(expect.stringMatching(what));
    }
  });

  it('is there for sessions that were rejected or still run, and not for those nobody knows', async () => {
    await using store = await open();
    expect(await findingsIn(await (await new Ended(store).rejected()).export(keys))).toEqual([]);
    expect(await findingsIn(await (await new Ended(store).running()).export(keys))).toEqual([]);
    await expect(new Ended(store).export(keys)).rejects.toMatchObject({ code: 'session_unknown' });
    const session = await new Ended(store).running();
    const foreign = exportEvidence({ ...session, calleeId: 'other', keys });
    await expect(foreign).rejects.toMatchObject({ code: 'session_unknown' });
  });
});

function keyOf(record: Row | undefined): [string, string, number] {
  return [String(record?.callee_id), String(record?.chain), Number(record?.position)];
}

function patchRecord(record: Row | undefined, set: Row): Write {
  return { patch: 'audit', key: keyOf(record), set };
}

function patchLog({ sessionId }: Ended, position: number, set: Row): Write {
  return { patch: 'log', key: [sessionId, position], set };
}

/** A body about another session. */
function foreign({ calleeId }: Ended): Row {
  return { body: JSON.stringify({ callee_id: calleeId, session_id: randomUUID() }) };
}

describe('a file of evidence', () => {
  let text: string;
  let bytes: Buffer;

  beforeAll(async () => {
    await using store = await openStore('memory:');
    text = await (await new Ended(store).completed()).export(keys);
    bytes = Buffer.from(text);
    expect(await findingsIn(bytes)).toEqual([]);
  });

  verifies('HCP-312', 'holds no token, but says what stands in its place', () => {
    for (const part of [TOKEN, OLD_TOKEN].flatMap((token) => token.split('.'))) expect(text).not.toContain(part);
    expect(text.match(/sha256:[0-9a-f]{64}/g)).toHaveLength(4);
    expect(JSON.parse(text.split('\n')[0] ?? '').redacted).toContain('sha256');
  });

  verifies(
    'HCP-312',
    'shows any flipped bit, wherever it is',
    async () => {
      const passed: string[] = [];
      for (let index = 0; index < bytes.length; index++) {
        for (const bit of new Set([0, index % 8])) {
          const flipped = Buffer.from(bytes);
          flipped.writeUInt8(flipped.readUInt8(index) ^ (1 << bit), index);
          if ((await findingsIn(flipped)).length === 0) passed.push(`bit ${bit} of byte ${index}`);
        }
      }
      expect(passed).toEqual([]);
    },
    120_000,
  );

  verifies('HCP-312', 'shows every bit of the seal', async () => {
    const start = bytes.lastIndexOf('\n', bytes.length - 2) + 1;
    for (let bit = start * 8; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      const index = Math.floor(bit / 8);
      flipped.writeUInt8(flipped.readUInt8(index) ^ (1 << (bit % 8)), index);
      expect(await findingsIn(flipped), `bit ${bit}`).not.toEqual([]);
    }
  });

  verifies('HCP-312', 'shows a seal in another spelling, also to a ring that is not strict', async () => {
    const respell = (seal: string) =>
      seal
        .split('.')
        .map((part) => Buffer.from(part, 'base64url').toString('base64url'))
        .join('.');
    const lax = { verify: (token: string, typ: string) => published.verify(respell(token), typ) };
    const seal: string = JSON.parse(text.split('\n').at(-2) ?? '').seal;
    // 64 bytes of signature leave four bits of the last character unused.
    const alike = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
      .map((last) => `${seal.slice(0, -1)}${last}`)
      .filter((spelling) => respell(spelling) === seal);
    expect(alike).toHaveLength(16);
    for (const spelling of alike) {
      const { findings } = await verifyEvidence(text.replace(seal, spelling), { keys: lax });
      expect(findings).toEqual(spelling === seal ? [] : ['The last line is not a seal']);
    }
    const spaced = text.replace('{"seal":', '{"seal": ');
    expect((await verifyEvidence(spaced, { keys: lax })).findings).toEqual(['The last line is not a seal']);
  });

  verifies('HCP-312', 'shows what was cut off, at either end or in the middle, or put in', async () => {
    const place = fc.nat(bytes.length);
    await fc.assert(
      fc.asyncProperty(place, place, fc.uint8Array({ maxLength: 4 }), async (a, b, more) => {
        const [from, to] = [Math.min(a, b), Math.max(a, b)];
        const spliced = Buffer.concat([bytes.subarray(0, from), more, bytes.subarray(to)]);
        fc.pre(!spliced.equals(bytes));
        expect(await findingsIn(spliced)).not.toEqual([]);
        expect(await findingsIn(bytes.subarray(0, Math.min(a, bytes.length - 1)))).not.toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  verifies('HCP-312', 'shows lines that were removed, doubled or swapped', async () => {
    const lines = text.slice(0, -1).split('\n');
    const join = (changed: readonly string[]) => `${changed.join('\n')}\n`;
    for (const [index, line] of lines.entries()) {
      expect(await findingsIn(join(lines.toSpliced(index, 1))), `without line ${index}`).not.toEqual([]);
      expect(await findingsIn(join(lines.toSpliced(index, 0, line))), `line ${index} twice`).not.toEqual([]);
      const [next] = lines.slice(index + 1);
      if (next === undefined) continue;
      expect(await findingsIn(join(lines.toSpliced(index, 2, next, line))), `${index} swapped`).not.toEqual([]);
    }
  });

  /** Lines sealed by whoever has the key, with claims that fit. */
  async function sealed(lines: readonly string[], ring = keys, typ = 'hcp-evidence+jws', claims: object = {}) {
    const content = lines.map((line) => `${line}\n`).join('');
    const count = (kind: string) => lines.filter((line) => line.startsWith(`{"${kind}"`)).length;
    const { format, callee_id, session_id } = JSON.parse(lines[0] ?? '');
    const sha256 = createHash('sha256').update(content).digest('hex');
    const fitting = { format, callee_id, session_id, sha256, log: count('log'), audit: count('audit') };
    return `${content}${JSON.stringify({ seal: await ring.sign({ ...fitting, ...claims }, typ) })}\n`;
  }

  verifies(
    'HCP-312',
    'cannot be sealed by somebody else, nor by a token of another kind or about another file',
    async () => {
      const lines = text.split('\n').slice(0, -2);
      expect(await findingsIn(await sealed(lines))).toEqual([]);
      const forged = [expect.stringMatching(/^The seal is not genuine/)];
      const stranger = await createKeyRing([await generateKey()]);
      expect(await findingsIn(await sealed(lines, stranger))).toEqual(forged);
      expect(await findingsIn(await sealed(lines, keys, 'hcp-session+jwt'))).toEqual(forged);
      for (const claim of ['format', 'callee_id', 'session_id', 'log', 'audit']) {
        const file = await sealed(lines, keys, undefined, { [claim]: 'other' });
        expect(await findingsIn(file)).toEqual([`The seal says another ${claim} than the file`]);
      }
    },
  );

  verifies('HCP-312', 'shows what is not in order although the callee sealed it', async () => {
    const lines = text.split('\n').slice(0, -2);
    const last = lines.at(-1) ?? '';
    const head = JSON.parse(lines[0] ?? '');
    const other = (fields: object) => lines.with(0, JSON.stringify({ ...head, ...fields }));
    const cases: readonly [what: string, lines: readonly string[]][] = [
      ['Line 10 does not belong there', lines.toSpliced(8, 1).toSpliced(9, 0, lines[8] ?? '')],
      ['Line 13 does not belong there', [...lines, '{"else":1}']],
      [`stands there twice`, [...lines, last]],
      ['The session has another callee_id than the file', other({ callee_id: 'other' })],
      ['The session has another session_id than the file', other({ session_id: randomUUID() })],
      ['Line 1 does not say that this is hcp-evidence/1', other({ format: 'hcp-evidence/2' })],
    ];
    for (const [what, changed] of cases) {
      expect(await findingsIn(await sealed(changed))).toContainEqual(expect.stringContaining(what));
    }
  });

  it('that is none is answered, not thrown at', async () => {
    const files = ['', '\n', '{}', '{"seal":1}\n', 'null\nnull\nnull\n', '[]\n[1]\n{"seal":"a.b.c"}\n', '\ud800\n'];
    for (const file of [...files, Buffer.from([0xff, 0x0a])]) {
      const report = await verifyEvidence(file, { keys: published });
      expect(report).toMatchObject({ sessionId: undefined, findings: expect.arrayContaining([expect.any(String)]) });
    }
  });
});
