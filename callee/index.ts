export {
  type CommandChannel,
  type CommandChannelOptions,
  openCommandChannel,
  type ReceivedCommand,
} from './command-channel.ts';
