import { parseMessage } from '../../shared/messages/parse.ts';
import { expectSame, expectThat } from '../wire/expect.ts';
import { family } from './family.ts';
import { tokenOf } from './played-callee.ts';

/** How a caller ends a session early. */
export const aborts = family('aborts', [
  [
    'envelope',
    ['HCP-001', 'HCP-005', 'HCP-232'],
    'aborts a session by a valid message with its id and its token',
    async (bench) => {
      const session = await bench.running();
      await session.ask(3, 'abort');
      const { delivery, message, payload } = await bench.command('abort');
      const parsed = parseMessage(delivery.body, delivery.properties);
      if (!parsed.ok) throw new Error(`The abort is not valid: ${parsed.fault.message}`);
      expectThat(message.session_id === session.sessionId, 'The abort names another session');
      expectThat(
        payload.session_token === tokenOf(session.sessionId),
        'The abort does not carry the token of the session',
      );
    },
  ],
  [
    'properties',
    ['HCP-002'],
    'sets the AMQP properties of an abort',
    async (bench) => {
      const session = await bench.running();
      await session.ask(3, 'abort');
      const { delivery, message } = await bench.command('abort');
      const { messageId, contentType, contentEncoding, type, correlationId } = delivery.properties;
      expectSame(
        { messageId, contentType, contentEncoding, type, correlationId },
        {
          ...{ messageId: message.message_id, type: 'abort', correlationId: session.sessionId },
          ...{ contentType: 'application/json', contentEncoding: 'utf-8' },
        },
        'What the properties say',
      );
    },
  ],
  [
    'aborted',
    ['HCP-225', 'HCP-228', 'V-06'],
    'follows a session while it is aborted, and tells its end',
    async (bench) => {
      const session = await bench.running();
      await session.ask(3, 'abort');
      await bench.command('abort');
      await session.move(4, 'RUNNING', 'ABORTING', 'abort_requested');
      await session.event(5, 'log', { level: 'info', message: 'Cleaning up', details: {} });
      await session.move(6, 'ABORTING', 'ABORTED', 'cleanup_complete');
      await session.closed(7, 'ABORTED', 'cleanup_complete');
      await session.sees(1, 2, 3, 4, 5, 6, 7);
      await session.ends('aborted');
    },
  ],
  [
    'only-one',
    ['HCP-232', 'HCP-214'],
    'aborts one of two sessions and follows the other',
    async (bench) => {
      const [one, other] = await bench.twoRunning();
      await one.ask(3, 'abort');
      const { message } = await bench.command('abort');
      expectThat(message.session_id === one.sessionId, 'It aborted the other session');
      await other.finish(3);
      await other.sees(1, 2, 3, 4);
      await other.ends('completed');
      expectThat(bench.callee.heard.length === 3, 'It sent more than two submits and an abort');
    },
  ],
  [
    'too-late',
    ['HCP-228'],
    'takes the result of a task that was completed before its abort arrived',
    async (bench) => {
      const session = await bench.running();
      await session.ask(3, 'abort');
      await bench.command('abort');
      await session.finish(4);
      await session.sees(1, 2, 3, 4, 5);
      await session.ends('completed');
    },
  ],
  [
    'unheard',
    ['HCP-225', 'V-137'],
    'tells that an abort was not heard in time, and follows the session on',
    async (bench) => {
      const constraints = { max_duration: 'PT1H', abort_timeout: 'PT0.2S' };
      const session = await bench.running({ graceMs: 400 }, { constraints });
      await session.ask(3, 'abort');
      await bench.command('abort');
      await session.ends('error');
      await session.move(4, 'RUNNING', 'ABORTING', 'abort_requested');
      await session.move(5, 'ABORTING', 'ABORTED', 'cleanup_complete');
      await session.closed(6, 'ABORTED', 'cleanup_complete');
      await session.sees(1, 2, 3, 4, 5, 6);
      await bench.until(
        () => 'the outcome aborted',
        () => session.outcomes.find(({ outcome }) => outcome === 'aborted'),
      );
    },
  ],
]);
