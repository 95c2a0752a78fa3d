import type { Row, Write } from '../../../../shared/store/store.ts';
import type { Tables } from '../../../../shared/store/tables.ts';

/** A log and what it is about: enough for what only one engine has. */
export const TABLES = {
  sessions: {
    columns: { id: 'text', version: 'integer', owner: 'text?' },
    key: ['id'],
    indexes: { by_owner: { columns: ['owner', 'version'] } },
  },
  events: {
    columns: { session: 'text', position: 'integer', body: 'text' },
    key: ['session', 'position'],
    indexes: {},
  },
} as const satisfies Tables;

export function sessionRow(id: string, columns: Row = {}): Row {
  return { id, version: 1, owner: null, ...columns };
}

export function insertSession(id: string, columns: Row = {}): Write {
  return { insert: 'sessions', row: sessionRow(id, columns) };
}

export function eventRow(session: string, position: number, body = `event ${position}`): Row {
  return { session, position, body };
}

export function insertEvent(session: string, position: number): Write {
  return { insert: 'events', row: eventRow(session, position) };
}

export function patchSession(id: string, version: number): Write {
  return { patch: 'sessions', key: [id], set: { version }, if: { version: version - 1 } };
}
