import { scanAll } from '../../shared/store/scan-all.ts';
import type { Row, StoreReader } from '../../shared/store/store.ts';
import { auditHeads } from './read.ts';
import { type AuditHead, NO_HASH, parseBody, rowFault } from './record.ts';

/** Something about a chain that is not as it was written. */
export interface AuditFinding {
  readonly chain: string;
  /** Of the record it is about; missing where it is about the chain as a whole. */
  readonly position?: number;
  /** One sentence. */
  readonly problem: string;
}

export interface VerifyAuditOptions {
  /** Heads that {@link auditHeads} gave earlier and that were kept out of reach of whoever can write the store. */
  readonly anchors?: readonly AuditHead[];
}

/**
 * Looks for every change to the audit log of a callee: records that were edited, removed, inserted or swapped, chains
 * that were cut off or removed. No finding means that it is intact, also while the callee goes on writing.
 *
 * Hashes need no secret: whoever may write the store can rewrite, shorten or remove, head and all, what no newer chain
 * has named yet, and make it fit. A process that still lives notices when it next writes, and names what it knew. Beyond
 * that only an anchor helps: up to one that was kept elsewhere, nothing can be rewritten.
 */
export async function verifyAudit(
  store: StoreReader,
  calleeId: string,
  { anchors = [] }: VerifyAuditOptions = {},
): Promise<AuditFinding[]> {
  const findings: AuditFinding[] = [];
  const promised = new Map<string, AuditHead & { readonly by: string }>();
  const promise = (head: AuditHead, by: string) => promised.set(JSON.stringify(head), { ...head, by });
  for (const { chain, length, hash } of anchors) promise({ chain, length, hash }, 'an anchor');
  for (const chain of await chainsOf(store, calleeId)) {
    findings.push(...(await verifyChain(store, calleeId, chain)));
    for (const head of await namedHeads(store, calleeId, chain)) promise(head, `chain ${chain}`);
  }
  for (const head of promised.values()) findings.push(...(await verifyPromise(store, calleeId, head)));
  return findings;
}

/** Those that have records, and those that have a head. */
async function chainsOf(store: StoreReader, calleeId: string): Promise<string[]> {
  const chains = new Set<string>();
  let after: Row | undefined;
  for (;;) {
    const [row] = await store.scan('audit', 'key', { where: [calleeId], limit: 1, ...(after && { after }) });
    if (row === undefined) break;
    chains.add(String(row.chain));
    // Behind its last record lies the next chain.
    after = { ...row, position: Number.MAX_SAFE_INTEGER };
  }
  for (const { chain } of await auditHeads(store, calleeId)) chains.add(chain);
  return [...chains].sort();
}

async function verifyChain(store: StoreReader, calleeId: string, chain: string): Promise<AuditFinding[]> {
  const where = [calleeId, chain];
  const walk = new Walk(chain);
  for await (const row of scanAll(store, 'audit', 'key', { where })) walk.step(row);
  const head = await store.get('audit_heads', where);
  const length = Number(head?.length ?? 0);
  // The callee may have gone on since; what the head counts was committed with it, so it must be there now.
  if (length > walk.length) {
    const grown = { where, from: walk.length + 1, to: length };
    for await (const row of scanAll(store, 'audit', 'key', grown)) walk.step(row);
  }
  walk.end(head);
  return walk.findings;
}

/** One pass over the records of a chain. */
class Walk {
  readonly findings: AuditFinding[] = [];
  readonly #chain: string;
  /** Up to which position it has come. */
  length = 0;
  /** Unknown behind a hole. */
  #hash: string | undefined = NO_HASH;

  constructor(chain: string) {
    this.#chain = chain;
  }

  step(row: Row): void {
    const position = Number(row.position);
    if (position < 1) {
      this.#find('was inserted: a chain begins with record 1', position);
      return;
    }
    this.#skipTo(position, 'was removed from the middle');
    const fault = rowFault(row);
    if (fault !== undefined) this.#find(fault, position);
    if (this.#hash !== undefined && row.previous !== this.#hash) {
      this.#find('does not follow the record before it', position);
    }
    if (position === 1 && row.kind !== 'opened') this.#find('does not open the chain', position);
    this.length = position;
    this.#hash = String(row.hash);
  }

  end(head: Row | undefined): void {
    const { length } = this;
    if (head === undefined) this.#find('The chain has records, but no head');
    else if (Number(head.length) < length) {
      this.#find(`The chain has ${length} records, but its head says ${head.length}`);
    } else {
      this.#skipTo(Number(head.length) + 1, 'was cut off the end');
      if (this.#hash !== undefined && head.hash !== this.#hash) {
        this.#find('The head of the chain does not have the hash of the last record');
      }
    }
  }

  #skipTo(position: number, what: string): void {
    const [first, last] = [this.length + 1, position - 1];
    if (first > last) return;
    this.#find(first === last ? what : `${what}, and so were all up to record ${last}`, first);
    this.length = last;
    this.#hash = undefined;
  }

  #find(problem: string, position?: number): void {
    const chain = this.#chain;
    if (position === undefined) this.findings.push({ chain, problem: `${problem} (chain ${chain})` });
    else this.findings.push({ chain, position, problem: `Record ${position} of chain ${chain} ${problem}` });
  }
}

/** The heads a chain named when it was opened. */
async function namedHeads(store: StoreReader, calleeId: string, chain: string): Promise<AuditHead[]> {
  const first = await store.get('audit', [calleeId, chain, 1]);
  const { heads } = Object(parseBody(String(first?.body)).details);
  if (!Array.isArray(heads)) return [];
  return heads.map((head) => {
    const [named, length, hash] = Array.isArray(head) ? head : [];
    return { chain: String(named), length: Number(length), hash: String(hash) };
  });
}

/** A chain may have grown since it was named, but what it was then must still be its beginning. */
async function verifyPromise(
  store: StoreReader,
  calleeId: string,
  { chain, length, hash, by }: AuditHead & { readonly by: string },
): Promise<AuditFinding[]> {
  const row = Number.isSafeInteger(length) ? await store.get('audit', [calleeId, chain, length]) : undefined;
  if (row?.hash === hash) return [];
  const fate = row === undefined ? 'is missing' : 'is another one';
  return [{ chain, position: length, problem: `Record ${length} of chain ${chain}, which ${by} names, ${fate}` }];
}
