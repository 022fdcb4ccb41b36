import { connect, createServer, type AddressInfo } from 'node:net';

/** A proxy to MySQL that delivers a COMMIT and loses its reply. */
export interface LostCommitProxy {
  readonly url: string;
  readonly lostReplies: number;
  close(): Promise<void>;
}

/** Each connection breaks after its first COMMIT. From the first COMMIT on, no connection gets replies. */
export async function openLostCommitProxy(targetUrl: string): Promise<LostCommitProxy> {
  const target = new URL(targetUrl);
  let lostReplies = 0;
  const server = createServer((client) => {
    const mysql = connect(Number(target.port), target.hostname);
    client.on('error', () => mysql.destroy()).on('close', () => mysql.destroy());
    mysql.on('error', () => client.destroy()).on('data', (data) => void (lostReplies === 0 && client.write(data)));
    client.on('data', (data) => {
      if (data.toString('latin1').endsWith('COMMIT')) {
        lostReplies++;
        setTimeout(() => client.destroy(), 300); // Gives the server time to commit.
      }
      mysql.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(targetUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    get lostReplies() {
      return lostReplies;
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
