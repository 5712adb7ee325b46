/**
 * The embedded API server as a process of its own: writes a kubeconfig to the path given and prints `ready`. Without controllers,
 * like a bare kube-apiserver: the raw loop's children name an owner that does not exist.
 */
import { writeFileSync } from 'node:fs'
import { startEmbeddedServer } from '../../integration/apiserver/embedded-server.ts'

const server = await startEmbeddedServer({ controllers: false })
writeFileSync(process.argv[2] ?? '', server.kubeconfig, { mode: 0o600 })
process.stdout.write('ready\n')
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
