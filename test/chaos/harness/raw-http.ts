import { connect, type Socket } from 'node:net';

const TIMEOUT_MS = 15_000;

/** A connection that no HTTP client of ours tidies up; errors on it are of no interest. */
export function openSocket(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  return socket;
}

/**
 * Sends bytes as they are.
 * @returns the status of the first answer; null when the connection ended without one
 */
export function sendRaw(url: string, bytes: string | Buffer): Promise<number | null> {
  return new Promise((resolve) => {
    const socket = openSocket(url);
    let heard = '';
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      const status = /^HTTP\/1\.1 (\d{3})/.exec(heard)?.[1];
      resolve(status === undefined ? null : Number(status));
    };
    const timer = setTimeout(end, TIMEOUT_MS);
    socket.setEncoding('latin1').on('data', (text: string) => {
      heard += text;
      if (heard.includes('\r\n\r\n')) end();
    });
    socket.on('close', end);
    socket.write(bytes);
  });
}
