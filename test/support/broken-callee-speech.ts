import { randomUUID } from 'node:crypto';
import { another, isEvent } from './broken-callee.ts';
import { type BrokenCallee, renamed, saying, swapping } from './broken-callee-kinds.ts';

/** Callees that say the wrong thing about what they do well. */
export const SPEECH_FAULTS: readonly BrokenCallee[] = [
  // Envelope and properties
  saying('calls its messages text', ['callee/envelope/content-type'], (said) =>
    renamed(said, { contentType: 'text/plain' }),
  ),
  saying('leaves the encoding open', ['callee/envelope/content-encoding'], ({ properties }) => {
    Reflect.deleteProperty(properties, 'contentEncoding');
  }),
  saying('correlates nothing', ['callee/envelope/correlation-id'], ({ properties }) => {
    Reflect.deleteProperty(properties, 'correlationId');
  }),
  saying('gives another id in the properties', ['callee/envelope/message-id-property'], (said) =>
    renamed(said, { messageId: randomUUID() }),
  ),
  saying('counts its time in milliseconds', ['callee/envelope/timestamp-property'], (said) =>
    renamed(said, { timestamp: Date.now() }),
  ),
  saying('names its messages otherwise', ['callee/envelope/type-property'], (said) =>
    renamed(said, { type: 'message' }),
  ),
  saying('does not say who it is', ['callee/envelope/app-id'], (said) => renamed(said, { appId: 'somebody' })),
  saying('gives no header with its answers', ['callee/envelope/reply-header'], (said) =>
    renamed(said, { headers: {} }),
  ),
  saying('tells the time without milliseconds', ['callee/envelope/timestamp'], ({ body }) => {
    body.timestamp = String(body.timestamp).replace(/\.\d+Z/, 'Z');
  }),
  saying('speaks HCP 1.1', ['callee/envelope/version'], ({ body }) => {
    body.hcp_version = '1.1';
  }),
  saying('numbers its messages', ['callee/envelope/message-id'], ({ body }) => {
    body.message_id = 'msg-001';
  }),
  // Topology
  saying('puts the type before the session', ['callee/topology/routing-key', 'callee/topology/select-type'], (said) => {
    const [caller, session, type] = said.key.split('.');
    said.key = `${caller}.${type}.${session}`;
  }),
  saying(
    'leaves the session word out',
    ['callee/topology/rejection-key', 'callee/topology/select-rejections'],
    (said) => {
      said.key = said.key.replace('.none.', '.');
    },
  ),
  // Answers
  saying(
    'does not say what it answers',
    ['callee/acceptance/in-reply-to', 'callee/acceptance/rejection-in-reply-to'],
    ({ payload }) => {
      delete payload.in_reply_to;
    },
  ),
  saying(
    'keeps its limits to itself',
    ['callee/acceptance/limits', 'callee/acceptance/duration-asked'],
    ({ payload }) => {
      delete payload.constraints;
    },
  ),
  saying('has one token for everybody', ['callee/acceptance/token-of-its-own'], ({ payload }) => {
    if ('session_token' in payload) payload.session_token = 'secret';
  }),
  {
    does: 'answers twice',
    caughtBy: ['callee/acceptance/one-answer', 'callee/acceptance/rejected-once'],
    fault: () => ({
      say: (said) =>
        /^task_(accepted|rejected)$/.test(String(said.body.type)) ? [said, another(said, said.payload)] : undefined,
    }),
  },
  {
    does: 'tells of a session before it accepts it',
    caughtBy: ['callee/acceptance/start'],
    fault: () => swapping(({ body }) => body.type === 'task_accepted'),
  },
  // Lifecycle
  {
    does: 'never closes a session',
    isSilent: true,
    caughtBy: ['callee/lifecycle/complete', 'callee/lifecycle/fail'],
    fault: () => ({ say: (said) => (isEvent(said, 'session_closed') ? [] : undefined) }),
  },
  {
    does: 'has a result for what was aborted',
    caughtBy: ['callee/lifecycle/abort', 'callee/abort/no-result'],
    fault: () => ({
      say: (said) =>
        said.data.to_state === 'ABORTED' ? [another(said, { outputs: {} }, 'task_completed'), said] : undefined,
    }),
  },
  {
    does: 'goes on talking behind the end',
    caughtBy: ['callee/lifecycle/silence-after-end'],
    fault: () => ({
      say: (said) => {
        if (!isEvent(said, 'session_closed')) return;
        const data = { stage: 'late', message: 'One more thing' };
        return [said, another(said, { event_type: 'progress', sequence: Number(said.payload.sequence) + 1, data })];
      },
    }),
  },
  {
    does: 'gives its result last',
    caughtBy: ['callee/lifecycle/complete', 'callee/sequence/end'],
    fault: () => swapping(({ body }) => body.type === 'task_completed'),
  },
  {
    does: 'keeps its pauses to itself',
    caughtBy: ['callee/lifecycle/pause', 'callee/sequence/states'],
    fault: () => ({ say: (said) => (said.data.to_state === 'PAUSED' ? [] : undefined) }),
  },
  saying('has reasons of its own', ['callee/lifecycle/complete'], ({ data }) => {
    if (data.to_state === 'COMPLETED') data.reason = 'because';
  }),
  saying('forgets its checkpoints', ['callee/lifecycle/checkpoint-fail'], ({ payload }) => {
    delete payload.error_details;
  }),
  // Sequences
  saying('skips a sequence', ['callee/sequence/gapless'], ({ payload }) => {
    if (Number(payload.sequence) >= 5) payload.sequence = Number(payload.sequence) + 1;
  }),
  saying('uses a sequence twice', ['callee/sequence/gapless', 'callee/lifecycle/laws'], ({ payload }) => {
    if (payload.sequence === 5) payload.sequence = 4;
  }),
  saying('counts from 0', ['callee/sequence/first', 'callee/sequence/each-session'], ({ payload }) => {
    if ('sequence' in payload) payload.sequence = Number(payload.sequence) - 1;
  }),
  {
    does: 'swaps two events',
    caughtBy: ['callee/sequence/order', 'callee/sequence/gapless'],
    fault: () => swapping(({ payload }) => payload.sequence === 7),
  },
  {
    does: 'uses one id for two messages',
    caughtBy: ['callee/sequence/unique'],
    fault: () => ({
      say: ({ body, data }) => {
        if (/Nr\. [34]$/.test(String(data.message))) body.message_id = '7c9e6679-7425-4de4-944b-e07fc1f90ae7';
      },
    }),
  },
  saying('numbers its results', ['callee/sequence/only-events'], ({ body, payload }) => {
    if (body.type !== 'event') payload.sequence = 1;
  }),
  // Events
  saying('tells another token', ['callee/events/session-created'], (said) => {
    if (isEvent(said, 'session_created')) said.data.session_token = 'another';
  }),
  saying('rounds what it is told', ['callee/events/progress'], ({ data }) => {
    if (typeof data.percent === 'number') data.percent = Math.round(data.percent);
  }),
  saying('leaves details out', ['callee/events/log-details', 'callee/events/log'], ({ data }) => {
    delete data.details;
  }),
  saying('breaks the schema of an event', ['callee/events/warning', 'callee/events/no-code'], (said) => {
    if (isEvent(said, 'warning') || isEvent(said, 'progress')) delete said.data.message;
  }),
  saying('has one id for all checkpoints', ['callee/events/checkpoint-ids'], ({ data }) => {
    if ('checkpoint_id' in data) data.checkpoint_id = 'ckpt';
  }),
  saying('closes for another reason', ['callee/events/session-closed'], (said) => {
    if (isEvent(said, 'session_closed')) said.data.reason = 'closed';
  }),
  // Results
  saying('loses the outputs', ['callee/result/outputs', 'callee/isolation/outputs'], ({ payload }) => {
    if ('outputs' in payload) payload.outputs = {};
  }),
  {
    does: 'completes what does not fit',
    caughtBy: ['callee/result/required-missing', 'callee/result/schema-broken', 'callee/result/required-inherited'],
    fault: () => ({
      say: (said) =>
        said.body.type === 'task_failed' ? [another(said, { outputs: {} }, 'task_completed')] : undefined,
    }),
  },
  saying('counts nothing', ['callee/result/summary'], ({ payload }) => {
    delete payload.execution_summary;
  }),
  {
    does: 'talks about its tokens',
    caughtBy: ['callee/result/no-secret'],
    fault: () => {
      let token: unknown;
      return {
        say: ({ payload, data }) => {
          token = payload.session_token ?? token;
          if ('stage' in data) data.message = `My token is ${token}`;
        },
      };
    },
  },
];
