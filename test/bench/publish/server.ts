/** The embedded API server as a process of its own: writes a kubeconfig to the path given and prints `ready`. */
import { writeFileSync } from 'node:fs'
import { startEmbeddedServer } from '../../integration/embedded-server.ts'

const server = await startEmbeddedServer()
writeFileSync(process.argv[2] ?? '', server.kubeconfig, { mode: 0o600 })
process.stdout.write('ready\n')
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
