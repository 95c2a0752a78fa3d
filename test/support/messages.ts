import type { MessageProperties } from '../../shared/transport/transport.ts';

export const M1 = '7c9e6679-7425-4de4-944b-e07fc1f90ae7';
export const S1 = '3fa85f64-5717-4562-b3fc-2c963f66afa6';

/** A valid `task_submit` as a plain object, to be spoilt by a test. */
export function submitObject(payload: object = {}, envelope: object = {}): Record<string, unknown> {
  return {
    hcp_version: '1.0',
    message_id: M1,
    timestamp: '2025-01-15T08:30:00.000Z',
    session_id: null,
    type: 'task_submit',
    payload: { capability: 'demo.count', caller_id: 'alpha', intent: 'Count to three', inputs: { to: 3 }, ...payload },
    ...envelope,
  };
}

/** A valid `event` as a plain object. */
export function eventObject(payload: object = {}, envelope: object = {}): Record<string, unknown> {
  return {
    ...submitObject({}, { type: 'event', session_id: S1 }),
    payload: { event_type: 'progress', sequence: 4, data: { stage: 'heating', message: 'At 320 °C' }, ...payload },
    ...envelope,
  };
}

export const bytes = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

/** The properties a well-behaved sender sets. */
export function wireProperties(more: Partial<MessageProperties> = {}): MessageProperties {
  return { contentType: 'application/json', contentEncoding: 'utf-8', appId: 'alpha', ...more };
}
