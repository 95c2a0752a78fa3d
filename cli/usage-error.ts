/** What was typed makes no sense; told in one sentence, with a way to the help. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
