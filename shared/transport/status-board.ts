import { HcpError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { TransportStatus } from './transport.ts';

/** A transport's status, and who wants to know of its changes. */
export class StatusBoard {
  readonly #logger: Logger;
  readonly #watchers = new Set<(status: TransportStatus) => void>();
  #status: TransportStatus = 'lost';

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get status(): TransportStatus {
    return this.#status;
  }

  show(status: TransportStatus): void {
    if (status === this.#status) return;
    this.#status = status;
    for (const watcher of [...this.#watchers]) {
      try {
        watcher(status);
      } catch (error) {
        this.#logger.error({ err: error }, 'A status listener threw');
      }
    }
  }

  watch(listener: (status: TransportStatus) => void): () => void {
    // Wrapped, so that a listener given twice is two.
    const watcher = (status: TransportStatus) => listener(status);
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

export function closedError(): HcpError<'transport_closed'> {
  return new HcpError('transport_closed', 'The transport is closed');
}
