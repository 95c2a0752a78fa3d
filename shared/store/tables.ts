/** A column's type; `?` allows `null`. */
export type ColumnType = 'text' | 'integer' | 'text?' | 'integer?';

export interface Index {
  readonly columns: readonly string[];
  readonly unique?: boolean;
}

export interface Table {
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** The columns that name a row, never null. */
  readonly key: readonly string[];
  readonly indexes: Readonly<Record<string, Index>>;
}

export type TableName = string;
export type Tables = Readonly<Record<TableName, Table>>;

/** Every table and index of the SDK, declared once; each engine makes them as it can. */
export const hcpTables = {
  /** The callee's answers by (caller, message id): a repeated submit gets the same bytes (HCP-102, HCP-103). */
  answers: {
    columns: {
      callee_id: 'text',
      caller_id: 'text',
      message_id: 'text',
      session_id: 'text',
      fingerprint: 'text',
      /** The body of `task_accepted` or `task_rejected`; `null` while the gate decides. */
      answer: 'text?',
    },
    key: ['callee_id', 'caller_id', 'message_id'],
    indexes: {},
  },
  /** One session of a callee, as of its last transition. */
  sessions: {
    columns: {
      session_id: 'text',
      callee_id: 'text',
      caller_id: 'text',
      message_id: 'text',
      /** The instance that runs it; empty when nobody does. */
      owner: 'text',
      /** Grows with each change of owner. */
      epoch: 'integer',
      state: 'text',
      /** The body of the `task_submit`. */
      request: 'text',
      user_id: 'text?',
      app_id: 'text?',
      trace: 'text',
      session_token: 'text?',
      /** Version of the capability that was chosen. */
      version: 'text?',
      risk_level: 'text?',
      max_duration_ms: 'integer?',
      created_at: 'integer',
      updated_at: 'integer',
      running_since: 'integer?',
      deadline_at: 'integer?',
      closed_at: 'integer?',
      /** Log positions up to here have been confirmed by the broker. Moved lazily. */
      published_through: 'integer',
      /** 1 until it is closed and everything is published. */
      active: 'integer?',
    },
    key: ['session_id'],
    indexes: {
      by_owner: { columns: ['callee_id', 'active', 'owner'] },
      by_closed: { columns: ['callee_id', 'closed_at'] },
    },
  },
  /** Everything a session said, in order. The key is what stops a former owner: two cannot write one position. */
  log: {
    columns: {
      session_id: 'text',
      position: 'integer',
      sequence: 'integer?',
      /** The message's type, an event's `event_type`, or `takeover`. */
      kind: 'text',
      message_id: 'text',
      at: 'integer',
      /** The message, byte for byte; `null` where there is nothing to publish. */
      body: 'text?',
    },
    key: ['session_id', 'position'],
    indexes: {},
  },
  /** Where a session can continue after a crash. */
  checkpoints: {
    columns: {
      session_id: 'text',
      checkpoint_id: 'text',
      sequence: 'integer',
      description: 'text',
      resumable: 'integer',
      created_at: 'text',
      data: 'text',
      data_sha256: 'text',
    },
    key: ['session_id', 'checkpoint_id'],
    indexes: {},
  },
  /** Commands for a session that another instance runs, until it has obeyed. */
  commands: {
    columns: {
      session_id: 'text',
      message_id: 'text',
      callee_id: 'text',
      received_at: 'integer',
      body: 'text',
      user_id: 'text?',
      app_id: 'text?',
    },
    key: ['session_id', 'message_id'],
    indexes: { by_callee: { columns: ['callee_id', 'received_at'] } },
  },
  /** The living processes of a callee. */
  instances: {
    columns: { callee_id: 'text', instance_id: 'text', lease_until: 'integer' },
    key: ['callee_id', 'instance_id'],
    indexes: {},
  },
} as const satisfies Tables;
