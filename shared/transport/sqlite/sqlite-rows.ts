import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { Entry, QueuedMessage, Rows } from '../embedded/broker.ts';
import type { BindingStep, ExchangeName, QueueDeclaration } from '../topology.ts';

/** Raised when what exists has to change. */
export const LAYOUT_VERSION = 1;

/**
 * Ids are never used again, not even those of removed rows: an old settlement must not hit a new message.
 * The `queue` of a binding may be a hash exchange.
 */
export const LAYOUT = `
  CREATE TABLE IF NOT EXISTS hcp__connection (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS hcp__queue (name TEXT PRIMARY KEY, declaration TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS hcp__binding (
    exchange TEXT NOT NULL, queue TEXT NOT NULL, routing_key TEXT NOT NULL, PRIMARY KEY (exchange, queue, routing_key)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS hcp__consumer (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, connection TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS hcp__message (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, exchange TEXT NOT NULL, routing_key TEXT NOT NULL,
    properties TEXT NOT NULL, body BLOB NOT NULL, attempts INTEGER NOT NULL, holder INTEGER, expires_at INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS hcp__message_by_holder ON hcp__message (queue, holder);
`;

const ENTRY = 'SELECT id, queue, exchange, routing_key, properties, body, attempts FROM hcp__message';

/** Rows in SQLite tables. `writes` counts the changes. */
export class SqliteRows implements Rows {
  writes = 0;
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  addConnection(id: string, expiresAt: number): void {
    this.#run('INSERT INTO hcp__connection (id, expires_at) VALUES (?, ?)', id, expiresAt);
  }

  renewConnection(id: string, expiresAt: number): boolean {
    return this.#run('UPDATE hcp__connection SET expires_at = ? WHERE id = ?', expiresAt, id) > 0;
  }

  hasConnection(id: string): boolean {
    return this.#get('SELECT 1 FROM hcp__connection WHERE id = ?', id) !== undefined;
  }

  expiredConnections(now: number): string[] {
    return this.#all('SELECT id FROM hcp__connection WHERE expires_at < ?', now).map(({ id }) => String(id));
  }

  removeConnection(id: string): void {
    this.#run('DELETE FROM hcp__connection WHERE id = ?', id);
  }

  queue(name: string): QueueDeclaration | undefined {
    const row = this.#get('SELECT declaration FROM hcp__queue WHERE name = ?', name);
    return row && JSON.parse(String(row.declaration));
  }

  addQueue(queue: QueueDeclaration): void {
    this.#run('INSERT INTO hcp__queue (name, declaration) VALUES (?, ?)', queue.name, JSON.stringify(queue));
  }

  removeQueue(name: string): void {
    this.#run('DELETE FROM hcp__message WHERE queue = ?', name);
    this.#run('DELETE FROM hcp__consumer WHERE queue = ?', name);
    this.#run('DELETE FROM hcp__binding WHERE queue = ?', name);
    this.#run('DELETE FROM hcp__queue WHERE name = ?', name);
  }

  addBinding({ source, routingKey, destination }: BindingStep): void {
    this.#run(
      'INSERT INTO hcp__binding (exchange, queue, routing_key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
      source,
      destination,
      routingKey,
    );
  }

  removeBinding({ source, routingKey, destination }: BindingStep): void {
    this.#run(
      'DELETE FROM hcp__binding WHERE exchange = ? AND queue = ? AND routing_key = ?',
      source,
      destination,
      routingKey,
    );
  }

  bindings(source: BindingStep['source']): Omit<BindingStep, 'source'>[] {
    const rows = this.#all('SELECT queue, routing_key FROM hcp__binding WHERE exchange = ?', source);
    return rows.map((row) => ({ destination: String(row.queue), routingKey: String(row.routing_key) }));
  }

  addConsumer(queue: string, connection: string): number {
    this.#run('INSERT INTO hcp__consumer (queue, connection) VALUES (?, ?)', queue, connection);
    return Number(this.#get('SELECT last_insert_rowid() AS id')?.id);
  }

  queueOf(consumer: number): string | undefined {
    const row = this.#get('SELECT queue FROM hcp__consumer WHERE id = ?', consumer);
    return row && String(row.queue);
  }

  firstConsumer(queue: string): number | undefined {
    const row = this.#get('SELECT id FROM hcp__consumer WHERE queue = ? ORDER BY id LIMIT 1', queue);
    return row && Number(row.id);
  }

  consumersOf(connection: string): number[] {
    return this.#all('SELECT id FROM hcp__consumer WHERE connection = ?', connection).map(({ id }) => Number(id));
  }

  removeConsumer(consumer: number): void {
    this.#run('DELETE FROM hcp__consumer WHERE id = ?', consumer);
  }

  addMessage(queue: string, { route, properties, body }: QueuedMessage, expiresAt: number | undefined): void {
    this.#run(
      `INSERT INTO hcp__message (queue, exchange, routing_key, properties, body, attempts, expires_at)
       VALUES (?, ?, ?, ?, ?, 0, ?)`,
      queue,
      route.exchange,
      route.routingKey,
      properties,
      body,
      expiresAt ?? null,
    );
  }

  count(queue: string): number {
    return Number(this.#get('SELECT COUNT(*) AS count FROM hcp__message WHERE queue = ?', queue)?.count);
  }

  waiting(queue: string, limit: number): Entry[] {
    return this.#entries(`${ENTRY} WHERE queue = ? AND holder IS NULL ORDER BY id LIMIT ?`, queue, limit);
  }

  hasWaiting(queue: string): boolean {
    return this.#get('SELECT 1 FROM hcp__message WHERE queue = ? AND holder IS NULL LIMIT 1', queue) !== undefined;
  }

  expiredMessages(queue: string, now: number): Entry[] {
    return this.#entries(`${ENTRY} WHERE queue = ? AND holder IS NULL AND expires_at <= ? ORDER BY id`, queue, now);
  }

  hold(id: number, consumer: number): void {
    this.#run('UPDATE hcp__message SET holder = ? WHERE id = ?', consumer, id);
  }

  held(id: number, consumer: number): Entry | undefined {
    return this.#entries(`${ENTRY} WHERE id = ? AND holder = ?`, id, consumer)[0];
  }

  heldBy(consumer: number): Entry[] {
    const queue = this.queueOf(consumer);
    return queue === undefined
      ? []
      : this.#entries(`${ENTRY} WHERE queue = ? AND holder = ? ORDER BY id`, queue, consumer);
  }

  release(id: number): void {
    this.#run('UPDATE hcp__message SET holder = NULL, attempts = attempts + 1 WHERE id = ?', id);
  }

  removeMessage(id: number): void {
    this.#run('DELETE FROM hcp__message WHERE id = ?', id);
  }

  #run(sql: string, ...values: SQLInputValue[]): number {
    const changes = Number(this.#statement(sql).run(...values).changes);
    this.writes += changes;
    return changes;
  }

  #get(sql: string, ...values: SQLInputValue[]) {
    return this.#statement(sql).get(...values);
  }

  #all(sql: string, ...values: SQLInputValue[]) {
    return this.#statement(sql).all(...values);
  }

  #entries(sql: string, ...values: SQLInputValue[]): Entry[] {
    return this.#all(sql, ...values).map((row) => ({
      id: Number(row.id),
      queue: String(row.queue),
      attempts: Number(row.attempts),
      message: {
        // What the columns hold, by their declaration above.
        body: row.body as Uint8Array,
        properties: String(row.properties),
        route: { exchange: String(row.exchange) as ExchangeName, routingKey: String(row.routing_key) },
      },
    }));
  }

  #statement(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}
