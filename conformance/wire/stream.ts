import { expectSame, expectThat } from './expect.ts';
import { at, type Heard, isEvent, sequenceOf, tell } from './heard.ts';

/** The nine transitions, but for the one that is told by `task_rejected`. */
const TRANSITIONS = new Set([
  'PENDING→RUNNING',
  'RUNNING→PAUSED',
  'PAUSED→RUNNING',
  'RUNNING→ABORTING',
  'PAUSED→ABORTING',
  'RUNNING→COMPLETED',
  'RUNNING→FAILED',
  'ABORTING→ABORTED',
]);

/** Sequences are 1, 2, 3 … in the order of arrival (HCP-111, D-05). */
export function expectGapless(session: readonly Heard[]): void {
  const sequences = session.filter((heard) => isEvent(heard)).map(sequenceOf);
  const wrong = sequences.findIndex((sequence, index) => sequence !== index + 1);
  expectThat(wrong < 0, `Sequence ${sequences[wrong]} came where ${wrong + 1} was due`);
}

/** Each message has an id of its own (HCP-112). */
export function expectUniqueIds(session: readonly Heard[]): void {
  const ids = session.map(({ messageId }) => messageId);
  expectThat(new Set(ids).size === ids.length, 'Two messages of the session have the same message_id');
}

/** Each state begins where the last one ended, by one of the transitions there are (HCP-109, HCP-110). */
export function expectLawfulStates(session: readonly Heard[]): void {
  let state = 'PENDING';
  for (const changed of session.filter((heard) => isEvent(heard, 'state_changed'))) {
    const [from, to] = ['from_state', 'to_state'].map((name) => String(at(changed, `/payload/data/${name}`)));
    expectThat(TRANSITIONS.has(`${from}→${to}`), `${tell(changed)} is no transition of HCP`);
    expectThat(from === state, `${tell(changed)} was told in state ${state}`);
    state = to ?? state;
  }
}

/** The result, then the last `state_changed`, then `session_closed` with the same state and reason (D-09). */
export function expectOrderlyEnd(session: readonly Heard[]): void {
  const [changed, closed] = session.slice(-2);
  expectThat(closed && isEvent(closed, 'session_closed'), 'The last message is not session_closed');
  expectThat(changed && isEvent(changed, 'state_changed'), 'Before session_closed comes no state_changed');
  const final = at(closed, '/payload/data/final_state');
  expectSame(final, at(changed, '/payload/data/to_state'), 'final_state');
  expectSame(at(closed, '/payload/data/reason'), at(changed, '/payload/data/reason'), 'The reason of session_closed');
  const results = session.flatMap(({ type }, index) =>
    /^task_(completed|failed)$/.test(type) ? [{ type, index }] : [],
  );
  const expected = { COMPLETED: 'task_completed', FAILED: 'task_failed' }[String(final)];
  expectSame(
    results.map(({ type }) => type),
    expected ? [expected] : [],
    `The results of a session that ended ${final}`,
  );
  if (expected) expectSame(results[0]?.index, session.length - 3, 'The place of the result');
}

/** Everything that holds for the stream of any session that has ended. */
export function expectLawful(session: readonly Heard[]): void {
  expectGapless(session);
  expectUniqueIds(session);
  expectLawfulStates(session);
  expectOrderlyEnd(session);
}
