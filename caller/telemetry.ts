import { context, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const SCOPE = 'hcp-sdk';

/** What became of an event that arrived. */
export type Fate = 'processed' | 'duplicate' | 'early' | 'late' | 'absurd' | 'failed';

/** Spans and metrics of a caller. Costs nothing where no OpenTelemetry SDK is registered. */
export class CallerTelemetry {
  readonly #events = metrics.getMeter(SCOPE).createCounter('hcp.caller.events', {
    description: 'Events by what became of them',
  });
  readonly #gaps = metrics.getMeter(SCOPE).createCounter('hcp.caller.gaps', {
    description: 'Ranges that were given up',
  });

  constructor(lag: () => number) {
    metrics
      .getMeter(SCOPE)
      .createObservableGauge('hcp.caller.lag', { description: 'Events that arrived and are not processed' })
      .addCallback((result) => result.observe(lag()));
  }

  event(fate: Fate, count = 1): void {
    this.#events.add(count, { fate });
  }

  gap(): void {
    this.#gaps.add(1);
  }

  /** Runs the sending of a submit in a span; what is built inside carries its trace. */
  async submitting<T>(calleeId: string, work: () => Promise<T>): Promise<T> {
    const attributes = { 'hcp.callee_id': calleeId };
    const span = trace.getTracer(SCOPE).startSpan('hcp.submit', { kind: SpanKind.PRODUCER, attributes });
    try {
      return await context.with(trace.setSpan(context.active(), span), work);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }
}
