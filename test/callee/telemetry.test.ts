import { context, trace } from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../shared/logger.ts';
import { openStore } from '../../shared/store/open-store.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { recordedTelemetry } from '../support/telemetry.ts';
import { verifies } from '../support/verifies.ts';
import { World } from '../support/world.ts';

/** Everything in this process: the stack cannot matter here. */
async function createWorld(): Promise<World> {
  const broker = new MemoryBroker();
  const store = await openStore('memory:');
  return World.create({
    transportUrl: 'memory:',
    storeUrl: 'memory:',
    connect: () => connectMemory({ broker }),
    openStore: async () => store,
    async stopBroker() {
      broker.stop();
      return async () => broker.start();
    },
    async [Symbol.asyncDispose]() {},
  });
}

describe('what a callee shows of itself', () => {
  const { spans, measured, reader } = recordedTelemetry();

  it('is one trace from the submit to the last event, also inside the executor', async () => {
    await using world = await createWorld();
    await world.serve(async () => {
      trace.getTracer('test').startSpan('tool call').end();
      return { outputs: {} };
    });
    const root = trace.getTracer('test').startSpan('orchestration');
    await context.with(trace.setSpan(context.active(), root), () => world.submit());
    root.end();
    const { traceId } = root.spanContext();
    await world.hearOut();
    for (const { properties } of world.received) {
      expect(String(properties.headers?.traceparent)).toContain(traceId);
    }
    const finished = spans.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId);
    expect(finished.map(({ name }) => name).toSorted()).toEqual(['hcp.session', 'orchestration', 'tool call']);
    const session = finished.find(({ name }) => name === 'hcp.session');
    expect(session?.parentSpanContext?.spanId).toBe(root.spanContext().spanId);
    expect(session?.attributes).toMatchObject({ 'hcp.state': 'COMPLETED', 'hcp.caller_id': world.callerId });
    const tool = finished.find(({ name }) => name === 'tool call');
    expect(tool?.parentSpanContext?.spanId).toBe(session?.spanContext().spanId);
  });

  it('counts sessions by their end, messages and the backlog', async () => {
    await using world = await createWorld();
    await world.serve(async () => {
      throw new Error('no');
    });
    await world.submit();
    await world.hearOut();
    await reader.forceFlush();
    const found =
      measured
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
    const names = found.map(({ descriptor }) => descriptor.name);
    expect(names).toEqual(
      expect.arrayContaining(['hcp.callee.sessions', 'hcp.callee.messages', 'hcp.callee.session.duration']),
    );
    const failed = found
      .find(({ descriptor }) => descriptor.name === 'hcp.callee.sessions')
      ?.dataPoints.find(({ attributes }) => attributes.state === 'FAILED');
    expect(failed).toMatchObject({ value: 1, attributes: { reason: 'execution_error' } });
  });

  verifies(
    ['HCP-014', 'HCP-015', 'V-91'],
    'names session, message, sequence and type in its log, and never the token: not there, nor in a span or a metric',
    async () => {
      await using world = await createWorld();
      const written: string[] = [];
      const logger = createLogger({ level: 'debug' }, { write: (line) => written.push(line) });
      await world.serve(
        async () => {
          throw new Error('no');
        },
        { logger },
      );
      await world.submit();
      const { sessionId, token } = await world.started();
      await world.hearOut();
      await world.abort(sessionId, { session_token: `${token}x` });
      await world.echo();
      await reader.forceFlush();
      const lines = written.map((line) => JSON.parse(line));
      expect(lines).toContainEqual(
        expect.objectContaining({ session_id: sessionId, message_id: expect.any(String), sequence: 2 }),
      );
      expect(lines).toContainEqual(expect.objectContaining({ session_id: sessionId, type: 'abort' }));
      const attributes = spans.getFinishedSpans().map((span) => [span.attributes, span.events]);
      const all = `${written.join()}${JSON.stringify(attributes)}${JSON.stringify(measured.getMetrics())}`;
      expect(all).toContain(sessionId);
      expect(all).not.toContain(token);
    },
  );
});
