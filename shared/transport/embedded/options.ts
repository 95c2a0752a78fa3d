import { type Clock, systemClock } from '../../clock.ts';
import { type Logger, silentLogger } from '../../logger.ts';
import { integerOption, LONGEST_TIMER_MS } from '../../option-checks.ts';

/** What both embedded transports are told. */
export interface EmbeddedOptions {
  /** Stamped as `userId` on everything published here. @default none */
  readonly login?: string;
  /** How many publishes may be unconfirmed; further ones wait. @default 512 */
  readonly window?: number;
  /** How long `close` waits for handlers and confirms. @default 10000 */
  readonly closeTimeoutMs?: number;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** @default logs nothing */
  readonly logger?: Logger;
}

export interface ResolvedEmbeddedOptions {
  readonly login: string | undefined;
  readonly window: number;
  readonly closeTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** As an object, so that the compiler misses none. */
export const EMBEDDED_OPTION_NAMES: readonly string[] = Object.keys({
  login: 0,
  window: 0,
  closeTimeoutMs: 0,
  clock: 0,
  logger: 0,
} satisfies Record<keyof EmbeddedOptions, 0>);

export function resolveEmbeddedOptions(options: EmbeddedOptions): ResolvedEmbeddedOptions {
  return {
    login: options.login,
    window: integerOption(options.window, 'window', { fallback: 512, min: 1, max: 65_535 }),
    closeTimeoutMs: integerOption(options.closeTimeoutMs, 'closeTimeoutMs', {
      fallback: 10_000,
      min: 1,
      max: LONGEST_TIMER_MS,
    }),
    clock: options.clock ?? systemClock,
    logger: options.logger ?? silentLogger,
  };
}
