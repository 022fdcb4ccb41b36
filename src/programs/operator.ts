import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createStockStore } from '../redis/stock-store.js';
import { wrapped } from '../process/seams.js';
import type { Connections } from '../process/connections.js';
import { systemClock as clock } from '../process/system-clock.js';

}

  const redis = await connections.redis();
}

  const redis = await connections.redis();
}
