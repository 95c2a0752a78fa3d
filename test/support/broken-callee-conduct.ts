import { randomUUID } from 'node:crypto';
import { another, isEvent } from './broken-callee.ts';
import { type BrokenCallee, hearing, renamed, repeating, saying } from './broken-callee-kinds.ts';

/** Callees that do the wrong thing about what they are told. */
export const CONDUCT_FAULTS: readonly BrokenCallee[] = [
  // Gate
  saying('rejects everything alike', ['callee/gate/no-intent', 'callee/gate/stranger'], ({ payload }) => {
    if ('reason_code' in payload) payload.reason_code = 'internal_error';
  }),
  hearing(
    'does anything for anybody',
    ['callee/gate/capability-unknown', 'callee/gate/duration-year'],
    ({ payload }) => {
      payload.capability = 'hcp.conformance';
      delete payload.constraints;
    },
  ),
  hearing('expects nothing of its outputs', ['callee/gate/schema-remote', 'callee/gate/schema-slow'], ({ payload }) => {
    delete payload.expected_output;
  }),
  {
    does: 'takes limits from its caller',
    caughtBy: ['callee/gate/own-envelope'],
    fault: () => {
      let envelope: unknown;
      return {
        hear: ({ payload }) => {
          envelope = payload.safety_envelope;
        },
        say: ({ payload }) => {
          if (envelope && 'safety_envelope' in payload) payload.safety_envelope = envelope;
        },
      };
    },
  },
  // Bad input
  hearing('does not look at content types', ['callee/input/content-type', 'callee/input/content-encoding'], (heard) =>
    renamed(heard, { contentType: 'application/json', contentEncoding: 'utf-8' }),
  ),
  hearing(
    'speaks every version',
    ['callee/input/version-2', 'callee/input/version-number', 'callee/abort/version-2'],
    ({ body }) => {
      body.hcp_version = '1.0';
    },
  ),
  {
    does: 'says nothing about bad input',
    isSilent: true,
    caughtBy: ['callee/input/not-json-answered', 'callee/input/too-large-answered', 'callee/gate/no-inputs'],
    fault: () => ({ say: ({ payload }) => (payload.reason_code === 'invalid_input' ? [] : undefined) }),
  },
  {
    does: 'is deaf after what it cannot read',
    isSilent: true,
    caughtBy: ['callee/input/not-utf8-unanswered', 'callee/input/empty-unanswered'],
    fault: () => {
      let isDeaf = false;
      return {
        hearSpoilt: () => {
          isDeaf = true;
          return false;
        },
        hear: () => (isDeaf ? null : undefined),
      };
    },
  },
  hearing('takes whatever comes for a task', ['callee/input/unknown-type', 'callee/input/event'], (heard) => {
    if (heard.body.type === 'task_submit') return;
    const task = { capability: 'hcp.conformance', intent: 'Guess', inputs: { script: [] } };
    Object.assign(heard.body, { type: 'task_submit', session_id: null });
    Object.assign(heard.payload, task, { caller_id: heard.properties.appId });
    Reflect.deleteProperty(heard.properties, 'correlationId');
  }),
  {
    does: 'refuses fields it does not know',
    caughtBy: ['callee/input/unknown-fields', 'callee/input/version-1-7'],
    fault: () => ({
      hear: ({ payload }) => {
        if ('note' in payload || 'mood' in payload) delete payload.intent;
      },
    }),
  },
  // Abort
  {
    does: 'does not stop',
    isSilent: true,
    caughtBy: ['callee/abort/running', 'callee/abort/paused'],
    fault: () => ({ hear: ({ body }) => (body.type === 'abort' ? null : undefined) }),
  },
  hearing(
    'stops for everybody',
    ['callee/abort/wrong-token', 'callee/abort/other-token', 'callee/abort/other-caller'],
    ({ body, payload, properties }) => {
      if (body.type !== 'abort') return;
      delete payload.session_token;
      Reflect.deleteProperty(properties, 'appId');
    },
  ),
  {
    does: 'answers aborts of nothing',
    caughtBy: ['callee/abort/again', 'callee/abort/many'],
    fault: () => ({
      say: (said) => (said.data.to_state === 'ABORTING' ? [said, another(said, said.payload)] : undefined),
    }),
  },
  {
    ...hearing('reads session ids letter by letter', ['callee/abort/upper-case'], ({ body, properties }) => {
      if (body.session_id !== String(body.session_id).toUpperCase()) return;
      body.session_id = randomUUID();
      Reflect.deleteProperty(properties, 'correlationId');
    }),
    isSilent: true,
  },
  hearing('reads message ids letter by letter', ['callee/duplicates/upper-case'], ({ body }) => {
    if (body.message_id === String(body.message_id).toUpperCase()) body.message_id = randomUUID();
  }),
  // Duplicates
  {
    does: 'answers again with a new id',
    caughtBy: ['callee/duplicates/running', 'callee/duplicates/rejected', 'callee/duplicates/answer-id'],
    fault: () => repeating((said) => another(said, said.payload)),
  },
  {
    does: 'does a task as often as it comes',
    caughtBy: ['callee/duplicates/running', 'callee/duplicates/at-once', 'callee/duplicates/completed'],
    fault: () => {
      const known = new Set<unknown>();
      return {
        hear: ({ body }) => {
          if (known.has(body.message_id)) body.message_id = randomUUID();
          known.add(body.message_id);
        },
      };
    },
  },
  {
    does: 'is silent about what it has answered',
    isSilent: true,
    caughtBy: ['callee/duplicates/aborted', 'callee/duplicates/other-payload'],
    fault: () => repeating(() => undefined),
  },
  // Time
  {
    ...hearing('has no sense of time', ['callee/time/running', 'callee/time/fractions'], ({ payload }) => {
      delete payload.constraints;
    }),
    isSilent: true,
  },
  // Isolation
  saying('mixes up what its sessions say', ['callee/isolation/interleaved'], ({ data }) => {
    if ('stage' in data) data.message = 'S1 0';
  }),
  {
    ...{ does: 'answers one submit for all', caughtBy: ['callee/isolation/two'], isSilent: true },
    fault: () => {
      let first: unknown;
      return {
        say: ({ payload }) => {
          first ??= payload.in_reply_to;
          if ('in_reply_to' in payload) payload.in_reply_to = first;
        },
      };
    },
  },
  {
    does: 'does one thing at a time',
    isSilent: true,
    caughtBy: ['callee/isolation/no-waiting', 'callee/isolation/many-hanging'],
    fault: () => {
      let isBusy = false;
      return {
        hear: ({ body }) => {
          if (isBusy || body.type !== 'task_submit') return null;
          isBusy = true;
          return undefined;
        },
      };
    },
  },
  // Extensions
  saying(
    'offers more than it was asked for',
    ['callee/core/no-extensions', 'callee/core/unknown-optional'],
    ({ body, payload }) => {
      if (body.type === 'task_accepted') payload.extensions = { 'stream/1': {} };
    },
  ),
  hearing('answers what was not agreed on', ['callee/core/x-status', 'callee/core/x-replay'], ({ body, payload }) => {
    if (body.type === 'task_submit') payload.extensions = { 'status/1': {}, 'replay/1': {} };
  }),
  hearing('needs nothing that is needed', ['callee/core/unknown-required'], ({ payload }) => {
    delete payload.extensions;
  }),
  {
    does: 'tells its story otherwise the second time',
    caughtBy: ['callee/extensions/replay', 'callee/extensions/replay-closed'],
    fault: () => repeating((said) => another(said, said.payload)),
  },
  saying(
    'counts its events wrong',
    ['callee/extensions/stream-completed', 'callee/extensions/stream-failed'],
    ({ body, payload }) => {
      if (/^task_[cf]/.test(String(body.type))) payload.extensions = { 'stream/1': { last_sequence: 99 } };
    },
  ),
  saying('does not know how it is', ['callee/extensions/status', 'callee/extensions/status-closed'], (said) => {
    if (isEvent(said, 'x-status')) said.data.state = 'PAUSED';
  }),
];
