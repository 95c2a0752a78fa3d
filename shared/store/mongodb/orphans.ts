import type { MongoClient, UUID } from 'mongodb';

/** A write that takes longer than this may be waiting for somebody dead. */
const PATIENCE_MS = 500;

interface Operation {
  readonly type: string;
  readonly appName?: string;
  readonly connectionId?: number;
  readonly lsid?: { readonly id: UUID };
  readonly transaction?: object;
}

/**
 * Ends the transactions of killed processes. The server keeps one for a minute after its client has gone, and everybody
 * who writes the same rows waits for it: a callee that was killed could not continue its sessions for that long.
 * Orphaned is a transaction of our own program's name whose last connection is closed; a slow one is never touched.
 */
export class OrphanedTransactions {
  readonly #client: MongoClient;
  #looking: Promise<void> | undefined;
  #forbidden = false;

  constructor(client: MongoClient) {
    this.#client = client;
  }

  /** Does some writing, and looks around while that takes long. */
  async clearWayFor<T>(write: () => Promise<T>): Promise<T> {
    const timer = setInterval(() => this.#look(), PATIENCE_MS);
    try {
      return await write();
    } finally {
      clearInterval(timer);
    }
  }

  #look(): void {
    if (this.#forbidden) return;
    this.#looking ??= this.#end().finally(() => {
      this.#looking = undefined;
    });
  }

  async #end(): Promise<void> {
    try {
      const admin = this.#client.db('admin');
      // Without allUsers a login sees, and may end, only what is its own: no privilege is needed.
      const scope = { allUsers: false, idleSessions: true, idleConnections: true };
      const operations = await admin.aggregate<Operation>([{ $currentOp: scope }]).toArray();
      const orphans = orphansAmong(operations, this.#client.options.appName);
      if (orphans.length > 0) await admin.command({ killSessions: orphans.map((id) => ({ id })) });
    } catch {
      // A server that does not let us look: its own time limit has to do.
      this.#forbidden = true;
    }
  }
}

function orphansAmong(operations: readonly Operation[], appName: string | undefined): UUID[] {
  const connections = operations.filter(({ type }) => type !== 'idleSession').map(({ connectionId }) => connectionId);
  const alive = new Set(connections);
  return operations.flatMap(({ type, transaction, appName: name, connectionId, lsid }) => {
    const isOrphan = type === 'idleSession' && transaction && name === appName && !alive.has(connectionId);
    return isOrphan && lsid ? [lsid.id] : [];
  });
}
