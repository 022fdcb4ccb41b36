import { EventEmitter } from 'node:events';
import {
  Producer,
  SimpleConsumer,
  StatusChecker,
  type BaseClient,
  type BaseClientOptions,
  type Endpoints,
  type MessageView,
  type ProducerOptions,
  type SimpleConsumerOptions,
} from 'rocketmq-client-nodejs';
import { Transport } from './transport.js';

/** Every call goes to the endpoint of the options. */
type Pinned = { readonly pinEndpoint: boolean };
type TelemetryStream = ReturnType<Producer['createTelemetryStream']>;

/** A producer on our transport, whose telemetry neither ends the process nor lives on after its shutdown. */
export class FencedProducer extends Producer {
  #stopped = false;

  constructor(options: ProducerOptions & Pinned) {
    super(options);
    this.rpcClientManager.close(); // it holds a timer, and no channel yet
    const transport = transportFor(this, options);
    Object.defineProperty(this, 'rpcClientManager', { value: transport });
  }

  override createTelemetryStream(endpoints: Endpoints): TelemetryStream {
    return this.#stopped ? deadStream() : fenceStream(super.createTelemetryStream(endpoints));
  }

  override async shutdown(): Promise<void> {
    this.#stopped = true;
    try {
      await super.shutdown();
    } finally {
      this.rpcClientManager.close(); // the client leaves it open when its goodbye fails
    }
  }
}

/** The same for a consumer, which also reads what became of an ack. */
export class FencedConsumer extends SimpleConsumer {
  #stopped = false;

  constructor(options: SimpleConsumerOptions & Pinned) {
    super(options);
    this.rpcClientManager.close();
    const transport = transportFor(this, options);
    Object.defineProperty(this, 'rpcClientManager', { value: transport });
  }

  override createTelemetryStream(endpoints: Endpoints): TelemetryStream {
    return this.#stopped ? deadStream() : fenceStream(super.createTelemetryStream(endpoints));
  }

  override async shutdown(): Promise<void> {
    this.#stopped = true;
    try {
      await super.shutdown();
    } finally {
      this.rpcClientManager.close();
    }
  }

  /** Rejects unless the broker took the ack. The client's own `ack` does not look at the answer per message. */
  async ackOne(view: MessageView): Promise<void> {
    for (const { status } of await this.ackMessage(view)) StatusChecker.check(status);
  }

  /** Rejects unless the broker took the new time. */
  async hideFor(view: MessageView, ms: number): Promise<void> {
    await this.changeInvisibleDuration(view, Math.max(0, Math.round(ms)));
  }
}

function transportFor(client: BaseClient, options: BaseClientOptions & Pinned): Transport {
  const resync = (endpoints: Endpoints): void => client.getTelemetrySession(endpoints).syncSettings();
  return new Transport(client, resync, options.pinEndpoint ? options.endpoints : null);
}

/** The client takes every listener off a stream that it releases; the error that follows would be uncaught. */
function fenceStream(stream: TelemetryStream): TelemetryStream {
  const removeAll = stream.removeAllListeners.bind(stream);
  stream.removeAllListeners = (...events: [] | [string | symbol]) => {
    removeAll(...events); // one `undefined` is not the same as none
    stream.on('error', () => undefined);
    return stream;
  };
  return stream;
}

/** For the timer that renews a broken stream one second later, shutdown or not. */
function deadStream(): TelemetryStream {
  const stream = new EventEmitter() as EventEmitter & { write(): boolean; end(): void };
  stream.write = () => false;
  stream.end = () => undefined;
  return stream as unknown as TelemetryStream;
}
