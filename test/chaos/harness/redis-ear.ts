import { once } from 'node:events';
import { connect } from 'node:net';

/** Hears every command that Redis takes. */
export interface RedisEar {
  /** Whether a command held this text. */
  heard(text: string): boolean;
  close(): void;
}

/**
 * MONITOR on a bare connection: the client loses its place when commands arrive together with the OK.
 * @throws the error of the socket, or what Redis says instead of OK
 */
export async function listenToRedis(url: string): Promise<RedisEar> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  await once(socket, 'connect');
  socket.write('MONITOR\r\n');
  let text = String((await once(socket, 'data'))[0]);
  if (!text.startsWith('+OK')) throw new Error(`MONITOR: ${text}`);
  socket.on('data', (more) => (text += String(more)));
  return { heard: (some) => text.includes(some), close: () => void socket.destroy() };
}
