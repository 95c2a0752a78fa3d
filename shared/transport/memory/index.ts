import { refuseUnknownOptions } from '../../option-checks.ts';
import { EMBEDDED_OPTION_NAMES, type EmbeddedOptions, resolveEmbeddedOptions } from '../embedded/options.ts';
import { EmbeddedTransport } from '../embedded/transport.ts';
import type { Transport } from '../transport.ts';
import { MemoryBroker } from './memory-broker.ts';

export { MemoryBroker } from './memory-broker.ts';

export interface MemoryTransportOptions extends EmbeddedOptions {
  /** Whom to connect to; transports with the same broker reach each other. @default one of its own */
  readonly broker?: MemoryBroker;
}

/** Connects to a broker in this process. */
export async function connectMemory(options: MemoryTransportOptions = {}): Promise<Transport> {
  refuseUnknownOptions(options, ['broker', ...EMBEDDED_OPTION_NAMES]);
  const { broker = new MemoryBroker(), ...rest } = options;
  return new EmbeddedTransport(broker, resolveEmbeddedOptions(rest)).open();
}
