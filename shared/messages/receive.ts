import type { Logger } from '../logger.ts';
import type { Delivery } from '../transport/transport.ts';
import type { MessageLimits } from './limits.ts';
import { type ParsedMessage, parseMessage, type RefusedMessage } from './parse.ts';

/** Parses a delivery and logs what is worth knowing of it: ids and rule names, never content (HCP-014, HCP-015). */
export function readDelivery(
  delivery: Delivery,
  { limits, logger }: { readonly limits: MessageLimits; readonly logger: Logger },
): ParsedMessage | RefusedMessage {
  const outcome = parseMessage(delivery.body, delivery.properties, limits);
  if (!outcome.ok) {
    logger.error({ fault: outcome.fault, ...outcome.salvage, attempts: delivery.attempts }, 'Message refused');
  } else if (outcome.warnings.length > 0) {
    const { message_id, session_id, type } = outcome.message;
    logger.warn({ message_id, session_id, type, warnings: outcome.warnings }, 'Message accepted with warnings');
  }
  return outcome;
}
