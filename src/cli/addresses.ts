import { loadConfig } from '../core/config/load.js';
import { UsageError } from './cli-error.js';

// Where commands find programs and servers.

/** The address of a program that listens here. It may listen everywhere, which is no address to ask at. */
export function addressToAsk({ host, port }: { readonly host: string; readonly port: number }): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/** The name servers to ask: those of the flag, else those that are set. @throws UsageError where neither names one */
export function namesrvOf(flag: string | undefined): string {
  const namesrv = flag ?? loadConfig(['repair'], process.env).repair.namesrv;
  if (namesrv === '') throw new UsageError('give --namesrv host:port or set NAMESRV_ADDR, such as 127.0.0.1:9876.');
  return namesrv;
}
