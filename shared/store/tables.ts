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
      status: 'text',
      submitted_at: 'integer',
      request: 'text',
      answer: 'text?',
    },
    key: ['caller_id', 'message_id'],
    indexes: { by_status: { columns: ['caller_id', 'status', 'submitted_at'] } },
  },
  /** The callee's answers by (caller, message id): a repeated submit gets the same bytes (HCP-102, HCP-103). */
  answers: {
    columns: {
      caller_id: 'text',
      message_id: 'text',
      fingerprint: 'text',
      answered_at: 'integer',
      answer: 'text',
    },
    key: ['caller_id', 'message_id'],
    indexes: { by_age: { columns: ['answered_at'] } },
  },
} as const satisfies Tables;
