/** Bounds of one message, checked before anything is built from it. */
export interface MessageLimits {
  /** Size of the body. @default 1 MiB (D-26) */
  readonly bodyBytes: number;
  /** Nesting of objects and arrays; recursion and MongoDB (100) both end somewhere. @default 32 */
  readonly depth: number;
  /** Keys in all objects together. @default 10,000 */
  readonly keys: number;
  /** UTF-8 size of one text. @default 256 KiB */
  readonly textBytes: number;
}

export const DEFAULT_MESSAGE_LIMITS: MessageLimits = {
  bodyBytes: 1024 * 1024,
  depth: 32,
  keys: 10_000,
  textBytes: 256 * 1024,
};

/** Fills in the defaults. Throws `TypeError` for anything but positive integers. */
export function resolveMessageLimits(limits: Partial<MessageLimits> = {}): MessageLimits {
  for (const [name, value] of Object.entries(limits)) {
    if (!(name in DEFAULT_MESSAGE_LIMITS)) {
      throw new TypeError(`limits.${name} is unknown; known are ${Object.keys(DEFAULT_MESSAGE_LIMITS).join(', ')}`);
    }
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`limits.${name} must be a positive integer`);
  }
  return { ...DEFAULT_MESSAGE_LIMITS, ...limits };
}
