import { context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { buildMessage, type MessageDraft } from '../../../shared/messages/build.ts';
import { resolveMessageLimits } from '../../../shared/messages/limits.ts';
import { parseMessage } from '../../../shared/messages/parse.ts';
import { traceContext, traceHeaders } from '../../../shared/telemetry.ts';
import { ManualClock } from '../../../testing/manual-clock.ts';
import { M1, S1 } from '../../support/messages.ts';
import { verifies } from '../../support/verifies.ts';

const clock = new ManualClock(Date.UTC(2025, 0, 15, 8, 30, 0, 250));
const submit: MessageDraft<'task_submit'> = {
  type: 'task_submit',
  sessionId: null,
  senderId: 'alpha',
  payload: { capability: 'demo.count', caller_id: 'alpha', intent: 'Count', inputs: { to: 3 } },
};
const progress = (data: Record<string, unknown>): MessageDraft<'event'> => ({
  type: 'event',
  sessionId: S1,
  senderId: 'lab',
  payload: { event_type: 'progress', sequence: 1, data },
});

describe('buildMessage', () => {
  verifies(['HCP-001', 'HCP-002'], 'fills the envelope and every property of the wire', () => {
    const { message, body, properties } = buildMessage(submit, { clock });
    expect(JSON.parse(body.toString())).toEqual(message);
    expect(message).toMatchObject({ hcp_version: '1.0', timestamp: '2025-01-15T08:30:00.250Z', session_id: null });
    expect(properties).toEqual({
      messageId: message.message_id,
      timestamp: 1736929800,
      contentType: 'application/json',
      contentEncoding: 'utf-8',
      type: 'task_submit',
      appId: 'alpha',
      headers: {},
    });
  });

  verifies('HCP-002', 'carries the session in correlation_id', () => {
    expect(buildMessage(progress({ stage: 's', message: 'm' })).properties.correlationId).toBe(S1);
  });

  it('names the submit an answer belongs to, in the payload and in a header', () => {
    const payload = { reason_code: 'forbidden', reason_message: 'No', in_reply_to: M1 };
    const { properties } = buildMessage({ type: 'task_rejected', sessionId: null, senderId: 'lab', payload });
    expect(properties.headers).toEqual({ 'x-hcp-in-reply-to': M1 });
  });

  verifies('HCP-005', 'refuses to make an invalid message, naming the field', () => {
    expect(() => buildMessage(progress({ stage: 's', message: 'm', percent: 150 }))).toThrow(
      expect.objectContaining({ code: 'message_invalid', message: expect.stringContaining('/payload/data/percent') }),
    );
    expect(() => buildMessage({ ...submit, payload: { ...submit.payload, intent: '' } })).toThrow(/payload\/intent/);
  });

  it('refuses an event type that is neither standard nor an extension', () => {
    const draft = (eventType: string) => ({
      ...progress({}),
      payload: { event_type: eventType, sequence: 1, data: {} },
    });
    expect(() => buildMessage(draft('tool_start'))).toThrow(/event_type/);
    expect(buildMessage(draft('x-weather')).message.payload.event_type).toBe('x-weather');
  });

  it.each([
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['a function', () => 1],
    ['a bigint', 1n],
    ['NaN', Number.NaN],
    ['undefined in a list', [undefined]],
    ['a toJSON of its own', Object.create({ toJSON: () => 'changed' })],
    ['an own __proto__', JSON.parse('{"__proto__":1}')],
  ])('refuses %s, which JSON would drop or change', (_, value) => {
    const inputs = { value };
    expect(() => buildMessage({ ...submit, payload: { ...submit.payload, inputs } })).toThrow(
      expect.objectContaining({ code: 'message_invalid', message: expect.stringContaining('/payload/inputs/value') }),
    );
  });

  it('refuses a value that contains itself', () => {
    const inputs: Record<string, unknown> = {};
    inputs.self = inputs;
    expect(() => buildMessage({ ...submit, payload: { ...submit.payload, inputs } })).toThrow(
      expect.objectContaining({ code: 'message_too_large' }),
    );
  });

  verifies('HCP-012', 'refuses to send over the size limit', () => {
    const limits = resolveMessageLimits({ bodyBytes: 400 });
    const sized = (n: number) => () =>
      buildMessage({ ...submit, payload: { ...submit.payload, intent: 'x'.repeat(n) } }, { limits });
    const room = 400 - buildMessage({ ...submit, payload: { ...submit.payload, intent: 'x' } }).body.byteLength + 1;
    expect(sized(room)().body.byteLength).toBe(400);
    expect(sized(room + 1)).toThrow(expect.objectContaining({ code: 'message_too_large' }));
  });

  verifies('HCP-013', 'refuses a sender id that is no harness id', () => {
    expect(() => buildMessage({ ...submit, senderId: 'a.b' })).toThrow(TypeError);
  });

  it('what it builds, parseMessage reads back without a warning, whatever JSON is inside', () => {
    const inputs = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 5 }), { maxKeys: 20 });
    fc.assert(
      fc.property(inputs, (value) => {
        fc.pre(!JSON.stringify(value).includes('__proto__'));
        const plain = JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
        const { body, properties } = buildMessage({ ...submit, payload: { ...submit.payload, inputs: plain } });
        const outcome = parseMessage(body, properties);
        expect(outcome).toMatchObject({ ok: true, warnings: [] });
        expect(outcome.ok && JSON.stringify(outcome.message)).toBe(body.toString());
      }),
    );
  });
});

describe('trace context', () => {
  afterEach(() => propagation.disable());

  it('adds nothing when the program traces nothing', () => {
    expect(traceHeaders()).toEqual({});
  });

  it('travels as W3C traceparent and tracestate', () => {
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
    const headers = traceHeaders(trace.setSpanContext(ROOT_CONTEXT, span));
    expect(headers).toEqual({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });
    expect(trace.getSpanContext(traceContext(headers))).toMatchObject({ ...span, isRemote: true });
  });

  it('ignores headers that are no text', () => {
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    expect(traceContext({ traceparent: 42, tracestate: null })).toBe(context.active());
  });
});
