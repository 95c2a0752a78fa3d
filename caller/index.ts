export {
  type CalleeMessage,
  type EventChannel,
  type EventChannelOptions,
  openEventChannel,
  type ReceivedEvent,
} from './event-channel.ts';
