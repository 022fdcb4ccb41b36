import { parseAnswer, RemotingError } from './remoting.js';

export interface QueueFigures {
  readonly topic: string;
  readonly queueId: number;
  readonly figures: Readonly<Record<string, number>>;
}

/**
 * Parses a table whose keys are objects, which JSON does not allow:
 * `{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{…}}}`.
 * @throws RemotingError if a queue lacks a wanted figure
 */
export function readOffsetTable(body: string, wanted: readonly string[]): QueueFigures[] {
  const found: QueueFigures[] = [];
  for (const [, key = '', value = ''] of body.matchAll(/\{([^{}]*"queueId":[^{}]*)\}\s*:\s*\{([^{}]*)\}/g)) {
    const { topic, queueId } = parseAnswer<{ topic: string; queueId: number }>(`{${key}}`);
    const figures = parseAnswer<Record<string, number>>(`{${value}}`);
    for (const name of wanted) {
      if (typeof figures[name] !== 'number') throw new RemotingError(`the answer has no ${name}`);
    }
    found.push({ topic, queueId, figures });
  }
  return found;
}
