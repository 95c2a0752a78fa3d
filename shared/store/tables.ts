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
  /** The caller's submits and, once it came, the answer: a restart can still match it (HCP-203). */
  submissions: {
    columns: {
      caller_id: 'text',
      message_id: 'text',
      callee_id: 'text',
      /** `open`, `accepted`, `rejected`, or `abandoned` when no answer came in time. */
      status: 'text',
      submitted_at: 'integer',
      /** The body of the `task_submit`. */
      request: 'text',
      /** The session, also while a human decides whether there will be one. */
      session_id: 'text?',
      /** How long that is waited for. */
      approval_until: 'integer?',
      /** The body of the answer. */
      answer: 'text?',
    },
    key: ['caller_id', 'message_id'],
    indexes: { by_status: { columns: ['caller_id', 'status', 'submitted_at'] } },
  },
  /** How far a caller is in each session it follows. */
  follows: {
    columns: {
      caller_id: 'text',
      session_id: 'text',
      callee_id: 'text',
      /** The callee's login, as the broker knew it at acceptance. */
      user_id: 'text?',
      message_id: 'text',
      /** −1 before the first event; only grows (HCP-206). */
      last_processed_sequence: 'integer',
      /** Ranges that were given up, as JSON. */
      holes: 'text',
      state: 'text',
      /** The body of the `task_accepted`. */
      accepted: 'text',
      /** The body of the `task_completed` or `task_failed`. */
      result: 'text?',
      final_state: 'text?',
      started_at: 'integer',
      ended_at: 'integer?',
      /** 1 until it has ended. */
      open: 'integer?',
    },
    key: ['caller_id', 'session_id'],
    indexes: {
      by_open: { columns: ['caller_id', 'open', 'started_at'] },
      by_ended: { columns: ['caller_id', 'ended_at'] },
    },
  },
  /** Events that wait: for those before them, for a reader, or for somebody to look why they could not be processed. */
  parked: {
    columns: {
      caller_id: 'text',
      session_id: 'text',
      sequence: 'integer',
      /** `waiting` or `failed`. */
      kind: 'text',
      parked_at: 'integer',
      reason: 'text?',
      body: 'text',
    },
    key: ['caller_id', 'session_id', 'sequence'],
    indexes: { by_kind: { columns: ['caller_id', 'kind', 'parked_at'] } },
  },
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
      data_classification: 'text?',
      /** The envelope the work must stay in, as JSON. */
      safety_envelope: 'text?',
      max_duration_ms: 'integer?',
      abort_timeout_ms: 'integer?',
      /** Names of the extensions in force, a JSON list; `null` when there are none. */
      extensions: 'text?',
      created_at: 'integer',
      updated_at: 'integer',
      running_since: 'integer?',
      deadline_at: 'integer?',
      closed_at: 'integer?',
      /** Which of the places of its capability it takes, where these are limited. */
      slot: 'integer?',
      /** `caller` while the caller keeps it paused, `caller_soon` while it is about to. */
      paused_by: 'text?',
      /** The hard limit that was broken, as JSON: it must end, and the emergency procedure run, whatever happens. */
      violation: 'text?',
      /** Log positions up to here have been confirmed by the broker. Moved lazily. */
      published_through: 'integer',
      /** 1 until it is closed and everything is published. */
      active: 'integer?',
    },
    key: ['session_id'],
    indexes: {
      by_owner: { columns: ['callee_id', 'active', 'owner'] },
      by_closed: { columns: ['callee_id', 'closed_at'] },
      by_created: { columns: ['callee_id', 'created_at'] },
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
  /** The places of a capability that runs only so many sessions at once, while they are taken. */
  slots: {
    columns: { callee_id: 'text', capability: 'text', slot: 'integer', session_id: 'text' },
    key: ['callee_id', 'capability', 'slot'],
    indexes: { by_session: { columns: ['session_id'] } },
  },
  /** Tasks a human has to decide about, and what became of that. */
  approvals: {
    columns: {
      session_id: 'text',
      callee_id: 'text',
      caller_id: 'text',
      /** `pending`, `approved`, `denied`; then `used`, `expired` or `withdrawn`. */
      status: 'text',
      /** Digest of exactly what is approved: capability and version, inputs, risk. */
      subject: 'text',
      risk_level: 'text',
      requested_at: 'integer',
      expires_at: 'integer',
      /** How many people must agree. */
      needed: 'integer',
      /** Who agreed or denied, when and why, a JSON list. */
      votes: 'text',
    },
    key: ['session_id'],
    indexes: { by_status: { columns: ['callee_id', 'status', 'requested_at'] } },
  },
  /** What was decided and done, in chains: each record seals the one before it. One chain per life of a process. */
  audit: {
    columns: {
      callee_id: 'text',
      chain: 'text',
      position: 'integer',
      /** Empty where it is about no session. */
      session_id: 'text',
      kind: 'text',
      at: 'integer',
      body: 'text',
      previous: 'text',
      hash: 'text',
    },
    key: ['callee_id', 'chain', 'position'],
    indexes: { by_session: { columns: ['callee_id', 'session_id', 'at'] } },
  },
  /** How long each chain is, and its last hash: a chain that was cut off is noticed. */
  audit_heads: {
    columns: { callee_id: 'text', chain: 'text', length: 'integer', hash: 'text' },
    key: ['callee_id', 'chain'],
    indexes: {},
  },
  /** The keys a callee signs with, where it was given none. */
  keys: {
    columns: { callee_id: 'text', kid: 'text', created_at: 'integer', jwk: 'text' },
    key: ['callee_id', 'kid'],
    indexes: { by_age: { columns: ['callee_id', 'created_at'] } },
  },
  /** The living processes of a callee. */
  instances: {
    columns: { callee_id: 'text', instance_id: 'text', lease_until: 'integer' },
    key: ['callee_id', 'instance_id'],
    indexes: {},
  },
} as const satisfies Tables;
