import { describe, expect } from 'vitest';
import { connectAmqp } from '../../../../shared/transport/amqp/index.ts';
import { describeAmqp, withAddress } from '../../../support/amqp-room.ts';
import { freePorts } from '../../../support/services/processes.ts';
import { verifies } from '../../../support/verifies.ts';

const SECRET = 's3cr3t-w0rd';

describeAmqp('a broker that will not have us', (room) => {
  async function refusal(url: string): Promise<{ code: string; retryable: boolean; message: string }> {
    const error = await room.connect({ url }).then(
      () => new Error('It let us in'),
      (reason) => reason,
    );
    // The cause is the driver's own error, which users log too.
    expect(`${error.stack} ${JSON.stringify(error)} ${error.cause?.stack}`).not.toContain(SECRET);
    return error;
  }

  verifies(['HCP-011', 'HCP-014'], 'says so when the password is wrong, without repeating it', async () => {
    const error = await refusal(withAddress(room.url, { password: SECRET }));
    expect(error).toMatchObject({ code: 'transport_unreachable', retryable: false });
    expect(error.message).toMatch(/^The broker at amqp:\/\/127\.0\.0\.1:\d+\/\S+ refused the login "guest"/);
  });

  verifies('HCP-011', 'says so when there is no such vhost', async () => {
    const error = await refusal(withAddress(room.url, { pathname: '/nowhere' }));
    expect(error).toMatchObject({ code: 'transport_unreachable', retryable: false });
    expect(error.message).toContain('has no vhost "nowhere", or does not let "guest" into it');
  });

  verifies('HCP-011', 'lets us into a vhost whose name needs escaping', async () => {
    const vhost = `${room.vhost}/a b%`;
    await room.control.ctl('add_vhost', vhost);
    try {
      await room.control.ctl('set_permissions', '--vhost', vhost, 'guest', '.*', '.*', '.*');
      const transport = await room.connect({
        url: withAddress(room.url, { pathname: `/${encodeURIComponent(vhost)}` }),
      });
      expect(transport.status).toBe('open');
      await transport.close();
    } finally {
      await room.control.ctl('delete_vhost', vhost);
    }
  });
});

describe('a broker that is not there', () => {
  verifies('HCP-014', 'can be tried again, and the password stays out of the error', async () => {
    const [port] = await freePorts(1);
    await expect(connectAmqp({ url: `amqp://lab:${SECRET}@127.0.0.1:${port}/hcp` })).rejects.toMatchObject({
      code: 'transport_unreachable',
      retryable: true,
      message: `Nothing listens at amqp://127.0.0.1:${port}/hcp`,
    });
  });
});
