import { context, trace } from '@opentelemetry/api';
import { describe, expect } from 'vitest';
import { acceptKnownCallers, createCallee } from '../../callee/index.ts';
import { createCaller } from '../../caller/index.ts';
import { createLogger } from '../../shared/logger.ts';
import { openStore } from '../../shared/store/open-store.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { recordedTelemetry } from '../support/telemetry.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

describe('what a caller shows of itself', () => {
  const { spans, measured, reader } = recordedTelemetry();

  verifies(
    ['HCP-014', 'HCP-015'],
    'is one trace from the submit over the callee to the handlers, counts events, and never shows the token',
    async () => {
      const broker = new MemoryBroker();
      await using there = await connectMemory({ broker });
      await using here = await connectMemory({ broker });
      await using store = await openStore('memory:');
      const written: string[] = [];
      const logger = createLogger({ level: 'debug' }, { write: (line) => written.push(line) });
      const policy = acceptKnownCallers(['alpha']);
      await using callee = createCallee({ calleeId: 'lab', transport: there, store, policy, logger });
      await callee
        .capability(TASK, async (_, run) => {
          await run.progress({ stage: 'working', message: 'half' });
          return { outputs: {} };
        })
        .start();
      const handled: string[] = [];
      let token = '';
      await using caller = createCaller({
        callerId: 'alpha',
        transport: here,
        store,
        logger,
        onEvent: ({ payload }) => {
          handled.push(trace.getSpanContext(context.active())?.traceId ?? 'none');
          if (payload.event_type === 'session_created') token = String(payload.data.session_token);
        },
      });
      const task = { capability: 'test.task', intent: 'Go', inputs: {} };
      const session = await caller.submit(task, { calleeId: 'lab' });
      await session.result();
      const submit = spans.getFinishedSpans().find(({ name }) => name === 'hcp.submit');
      const traceId = submit?.spanContext().traceId;
      expect(handled.length).toBeGreaterThanOrEqual(3);
      expect(new Set(handled)).toEqual(new Set([traceId]));
      const theirs = spans.getFinishedSpans().find(({ name }) => name === 'hcp.session');
      expect(theirs?.parentSpanContext?.spanId).toBe(submit?.spanContext().spanId);
      await reader.forceFlush();
      const names = measured
        .getMetrics()
        .flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap((scope) => scope.metrics.map(({ descriptor }) => descriptor.name)),
        );
      expect(names).toEqual(expect.arrayContaining(['hcp.caller.events', 'hcp.caller.lag']));
      const all = `${written.join()}${JSON.stringify(spans.getFinishedSpans().map(({ attributes }) => attributes))}`;
      expect(token).not.toBe('');
      expect(all).not.toContain(token);
    },
  );
});
