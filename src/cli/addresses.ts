import { loadConfig } from '../core/config/load.js';
import { UsageError } from '../process/cli-error.js';

// Where commands find programs and servers.

/**
 * Returns the address at which to reach a program on this machine. Replaces a wildcard address with the loopback address.
 */
export function addressToAsk({ host, port }: { readonly host: string; readonly port: number }): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/**
 * Returns the name servers of the flag, or the configured ones without a flag. @throws UsageError when neither names a
 * server
 */
export function namesrvOf(flag: string | undefined): string {
  const namesrv = flag ?? loadConfig(['repair'], process.env).repair.namesrv;
  if (namesrv === '') throw new UsageError('give --namesrv host:port or set NAMESRV_ADDR, such as 127.0.0.1:9876.');
  return namesrv;
}
