import { connect, createServer, type Socket } from 'node:net';

/** A door to a MongoDB server that can lose answers: the server does the work, and the client never hears of it. */
export interface LossyProxy extends AsyncDisposable {
  readonly port: number;
  /** Loses the answers to the next writes that would be acknowledged: commits, and writes outside a transaction. */
  loseAcknowledgements(count: number): void;
  /** How many were lost since the start. */
  readonly lost: number;
}

export async function startLossyProxy(host: string, port: number): Promise<LossyProxy> {
  let toLose = 0;
  let lost = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, host);
    let losing = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (request) => {
      if (toLose > 0 && isAcknowledgedWrite(request)) {
        toLose--;
        losing = true;
      }
      upstream.write(request);
    });
    upstream.on('data', (answer) => {
      if (!losing) client.write(answer);
      else {
        lost++;
        client.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port');
  return {
    port: address.port,
    loseAcknowledgements: (count) => {
      toLose = count;
    },
    get lost() {
      return lost;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Only writes have a transaction number, and only those inside a transaction say `autocommit`. */
function isAcknowledgedWrite(request: Buffer): boolean {
  return request.includes('commitTransaction') || (request.includes('txnNumber') && !request.includes('autocommit'));
}
