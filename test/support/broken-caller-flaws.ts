/** What a caller may do wrong, and the check that must notice it. */
export const CALLER_FLAWS = {
  'submits-first': 'caller/submit/queue-first',
  'new-bytes': 'caller/submit/sent-again',
  forgets: 'caller/submit/restart',
  guesses: 'caller/answers/no-guess',
  'ignores-order': 'caller/order/reordered',
  'handles-duplicates': 'caller/duplicates/again',
  'waits-for-ever': 'caller/gaps/flushed',
  'stops-at-unknown-event': 'caller/odd-messages/unknown-event-type',
  'dies-of-bad-json': 'caller/odd-messages/not-json',
  'result-at-once': 'caller/results/behind-gap',
  'no-token': 'caller/aborts/envelope',
  'acks-first': 'caller/restarts/in-hand',
  'asks-replay': 'caller/extensions/only-agreed',
} as const;

export type CallerFlaw = keyof typeof CALLER_FLAWS;
