import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A door to a server through which links can be broken in the ways networks break them. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Breaks every link with a TCP reset. New ones are possible at once. */
  resetAll(): void;
  /** Black hole: links stay up, new ones can be made, nothing gets through, not even the end of a link. */
  freeze(): void;
  /** Everything arrives this much later and in small pieces. */
  slow(latencyMs: number): void;
  /** Hangs up on every link, old and new, as when the server is gone. */
  refuse(): void;
  /** Undoes the three above; what was held goes on, as after a retransmission. */
  pass(): void;
}

/** Small enough to cut an AMQP frame in two. */
const SLOW_PIECE_BYTES = 1000;

export async function startTcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let latencyMs = 0;
  let refusing = false;
  let thaw = Promise.withResolvers<void>();
  thaw.resolve();

  async function deliver(chunk: Buffer, to: Socket): Promise<void> {
    if (latencyMs === 0) return write(chunk, to);
    for (let at = 0; at < chunk.length; at += SLOW_PIECE_BYTES) {
      await delay(latencyMs);
      await write(chunk.subarray(at, at + SLOW_PIECE_BYTES), to);
    }
  }

  async function carry(from: Socket, to: Socket): Promise<void> {
    try {
      for await (const chunk of from) {
        await thaw.promise;
        await deliver(chunk, to);
      }
      await thaw.promise;
      to.end();
    } catch {
      // One end broke: so does the other, once the news can get through.
      await thaw.promise;
      to.destroy();
    }
  }

  function resetAll(): void {
    for (const socket of sockets) socket.resetAndDestroy();
  }

  const server = createServer((client) => {
    if (refusing) return client.resetAndDestroy();
    const upstream = connect(target);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {}); // `carry` sees it too
      socket.on('close', () => sockets.delete(socket));
    }
    void carry(client, upstream);
    void carry(upstream, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port');

  return {
    port: address.port,
    resetAll,
    freeze() {
      thaw.resolve();
      thaw = Promise.withResolvers();
    },
    slow(milliseconds) {
      latencyMs = milliseconds;
    },
    refuse() {
      refusing = true;
      resetAll();
    },
    pass() {
      latencyMs = 0;
      refusing = false;
      thaw.resolve();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      thaw.resolve();
      await closed;
    },
  };
}

async function write(chunk: Buffer, to: Socket): Promise<void> {
  if (!to.write(chunk)) await once(to, 'drain');
}
