import { context, metrics, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { SessionRecord } from '../session/record.ts';
import type { Clock } from '../shared/clock.ts';
import { traceContext } from '../shared/telemetry.ts';

const SCOPE = 'hcp-sdk';

/** Spans and metrics of a callee. Costs nothing where no OpenTelemetry SDK is registered. */
export class CalleeTelemetry {
  readonly #clock: Clock;
  readonly #spans = new Map<string, Span>();
  readonly #sessions = metrics.getMeter(SCOPE).createCounter('hcp.callee.sessions', {
    description: 'Sessions by how they ended, and those accepted',
  });
  readonly #messages = metrics.getMeter(SCOPE).createCounter('hcp.callee.messages', {
    description: 'Messages stored for publication',
  });
  readonly #durations = metrics.getMeter(SCOPE).createHistogram('hcp.callee.session.duration', {
    description: 'From submit to end',
    unit: 'ms',
  });

  constructor(clock: Clock, backlog: () => number) {
    this.#clock = clock;
    metrics
      .getMeter(SCOPE)
      .createObservableGauge('hcp.callee.backlog', { description: 'Messages the broker has not confirmed' })
      .addCallback((result) => result.observe(backlog()));
  }

  /** Opens the span of a session, below the trace its submit came with. Answers the headers that continue it. */
  began(
    session: { readonly sessionId: string; readonly callerId: string; readonly calleeId: string },
    headers: Readonly<Record<string, unknown>>,
  ): Record<string, string> {
    const parent = traceContext(headers);
    const attributes = {
      'hcp.session_id': session.sessionId,
      'hcp.caller_id': session.callerId,
      'hcp.callee_id': session.calleeId,
    };
    const span = trace.getTracer(SCOPE).startSpan('hcp.session', { kind: SpanKind.CONSUMER, attributes }, parent);
    this.#spans.set(session.sessionId, span);
    const carrier: Record<string, string> = {};
    propagation.inject(trace.setSpan(context.active(), span), carrier);
    return carrier;
  }

  accepted({ sessionId }: SessionRecord): void {
    this.#sessions.add(1, { state: 'RUNNING' });
    this.#spans.get(sessionId)?.addEvent('accepted');
  }

  said(messages: number): void {
    this.#messages.add(messages);
  }

  ended({ sessionId, state, createdAt }: SessionRecord, reason: string): void {
    this.#sessions.add(1, { state, reason });
    this.#durations.record(this.#clock.now() - createdAt, { state });
    const span = this.#spans.get(sessionId);
    span?.setAttributes({ 'hcp.state': state, 'hcp.reason': reason });
    if (state === 'FAILED') span?.setStatus({ code: SpanStatusCode.ERROR, message: reason });
    this.left(sessionId);
  }

  /** The session goes on elsewhere, or is over. */
  left(sessionId: string): void {
    this.#spans.get(sessionId)?.end();
    this.#spans.delete(sessionId);
  }
}
