import time
import paceline


def slow():
    time.sleep(1)
    print("the slow task has ended")


with paceline.Pool() as pool:  # its end waits for the slow task
    pool.post(slow)
    pool.after(0.02, lambda: print("20 ms have passed"))
