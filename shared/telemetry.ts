import { type Context, context, propagation } from '@opentelemetry/api';

/** The headers that carry the active trace (W3C `traceparent`, `tracestate`); empty when no propagator is registered. */
export function traceHeaders(active: Context = context.active()): Record<string, string> {
  const carrier: Record<string, string> = {};
  propagation.inject(active, carrier);
  return carrier;
}

/** The trace a received message belongs to. Header values that are no text are ignored. */
export function traceContext(headers: Readonly<Record<string, unknown>> | undefined): Context {
  const carrier: Record<string, string> = {};
  for (const name of propagation.fields()) {
    const value = headers?.[name];
    if (typeof value === 'string') carrier[name] = value;
  }
  return propagation.extract(context.active(), carrier);
}
