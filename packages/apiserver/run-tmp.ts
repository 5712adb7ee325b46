import { createApiServer } from '@seamark/apiserver'
const server = createApiServer({ onError: (e) => console.error(e) })
const front = await server.listen({ port: Number(process.env.PORT ?? 8001) })
console.log('ready', front.url)
setInterval(() => {}, 1e6)
