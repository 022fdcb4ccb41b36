import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { decodeFrame, REQUEST } from '../../src/rocketmq/admin/remoting.js';

/** The answer of a broker. `closes` sends no answer and closes the connection. */
export type Said =
  | {
      readonly code: number;
      readonly remark?: string;
      readonly body?: string | Buffer;
      readonly extFields?: Readonly<Record<string, string>>;
    }
  | { readonly bytes: Buffer }
  | 'closes';

/** @param code of `REQUEST` */
export type Broker = (code: number, fields: Readonly<Record<string, string>>) => Said;

const RUNTIME = JSON.stringify({ table: { brokerActive: 'true', brokerVersionDesc: 'V5_4_0' } });

/** Several clusters behind one name server. */
interface StandInClusters {
  readonly clusterOf?: (broker: string) => string;
  /** The cluster that has our topics, or null. */
  readonly withTopics?: string | null;
}

/** A name server and brokers that speak the admin protocol of RocketMQ and answer as the test specifies. */
export class StandInCluster {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  /** Addresses by name. */
  readonly #brokers = new Map<string, string>();
  readonly #silent = new Set<string>();
  readonly #clusterOf: (broker: string) => string;
  namesrvAddr = '';

  private constructor(clusterOf: (broker: string) => string) {
    this.#clusterOf = clusterOf;
  }

  /** Starts the servers. By default each broker answers that it is up. */
  static async start(
    brokers: Readonly<Record<string, Broker>>,
    { clusterOf = () => 'production', withTopics = null }: StandInClusters = {},
  ): Promise<StandInCluster> {
    const cluster = new StandInCluster(clusterOf);
    for (const [name, broker] of Object.entries(brokers)) {
      const says: Broker = (code, fields) => {
        if (cluster.#silent.has(name)) return 'closes';
        return code === REQUEST.brokerRuntimeInfo ? { code: 0, body: RUNTIME } : broker(code, fields);
      };
      cluster.#brokers.set(name, await cluster.#listen(says));
    }
    cluster.namesrvAddr = await cluster.#listen((code) => {
      if (code !== REQUEST.routeOfTopic) return { code: 0, body: cluster.#info() };
      const brokerDatas = [{ cluster: withTopics, brokerName: 'b', brokerAddrs: {} }];
      return withTopics === null
        ? { code: 17, remark: 'no route' }
        : { code: 0, body: JSON.stringify({ brokerDatas }) };
    });
    return cluster;
  }

  /** Forgets a broker, as a name server does when the broker dies. */
  forget(name: string): void {
    this.#brokers.delete(name);
  }

  /** Makes a broker that the name server still knows stop answering. */
  silence(name: string): void {
    this.#silent.add(name);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) server.close();
  }

  #info(): string {
    const brokerAddrTable = Object.fromEntries(
      [...this.#brokers].map(([name, address]) => [
        name,
        { cluster: this.#clusterOf(name), brokerAddrs: { 0: address } },
      ]),
    );
    return JSON.stringify({ brokerAddrTable });
  }

  async #listen(broker: Broker): Promise<string> {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      let received = Buffer.alloc(0);
      socket
        .on('error', () => undefined)
        .on('close', () => this.#sockets.delete(socket))
        .on('data', (chunk) => {
          received = Buffer.concat([received, chunk]);
          const asked = decodeFrame(received);
          if (asked === null) return;
          received = Buffer.alloc(0);
          const said = broker(asked.code, asked.extFields ?? {});
          if (said === 'closes') socket.destroy();
          else socket.write('bytes' in said ? said.bytes : frame(said));
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#servers.push(server);
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
}

function frame({ code, remark, body = '', extFields }: Exclude<Said, 'closes' | { readonly bytes: Buffer }>): Buffer {
  const header = Buffer.from(JSON.stringify({ code, remark, extFields }));
  const payload = Buffer.from(body);
  const lengths = Buffer.alloc(8);
  lengths.writeInt32BE(4 + header.length + payload.length, 0);
  lengths.writeInt32BE(header.length, 4);
  return Buffer.concat([lengths, header, payload]);
}
