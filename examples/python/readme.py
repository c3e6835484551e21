import time, paceline

pool = paceline.Pool()
http = paceline.Http(pool, "127.0.0.1:8080")


@http.get("/order")
def order(request):
    time.sleep(1)  # a slow database: no other request waits for it
    pool.post(print, "a job: send a mail")
    return paceline.Response.json("ordered")


with pool, http, paceline.Signals() as signals:
    print("http://127.0.0.1:8080/order is served", flush=True)
    signals.wait()  # SIGTERM: what has begun is completed
